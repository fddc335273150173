/* SPDX-License-Identifier: GPL-2.0-only */
/* The events that a whole run has not counted, for a line on stderr: records of an interval, or of one
 * execution of several, don't tell. Tables say it themselves. */
#pragma once

#include "activity/activity.h"
#include "activity/tally.h"

struct uncounted {
	struct uncounted_event {
		char *name;
		unsigned int nth; /* of this name */
		char *why;	  /* NULL: it was counted */
	} * list;
	size_t nr;
};

/* Must be called after the last reading of each execution, whose events are those of the plan. */
void uncounted_note(struct uncounted *uncounted, const struct activity *activity, const struct tally *tally);

/* Says which events were never counted, in one line for all that have the same reason. uncounted_say_never()
 * has said which of them can't be. */
void uncounted_say(const struct uncounted *uncounted, const struct activity *activity);

/* Says in the same way, before anything is measured, which events of the plan can't be counted, or sampled.
 */
void uncounted_say_never(const struct activity *activity);

void uncounted_release(struct uncounted *uncounted);
