/* SPDX-License-Identifier: GPL-2.0-only */
/* Why an event was not counted, or only part of the time: the same words in the records of all activities. */
#pragma once

#include <jansson.h>

#include "activity/activity.h"
#include "base/count.h"

#define WHY_SIZE 600

/* Why the plan's i-th event was not counted, or why the kernel has stopped counting it, by its enabled and
 * running times; NULL if it was counted, or only took turns. `text` is for the result. */
const char *why_not_counted(const struct activity *activity, size_t i, const struct count *count,
			    char text[WHY_SIZE]);

/* The reason why it took turns: another event of this session that needs the same register or counter, if
 * there is one, or what others may hold. Returns `text`. */
const char *why_in_turns(const struct activity *activity, size_t i, char text[WHY_SIZE]);

/* Puts the status of an event's count into a record, and unless it was counted all the time, why. */
void why_put(const struct activity *activity, size_t i, const struct count *count, json_t *record);

/* Says in a record that the kernel paused the event so often, of which so often because of another event of
 * its group, so that its count is what there is at least. */
void why_put_pauses(__u64 pauses, __u64 by_group, json_t *record);
