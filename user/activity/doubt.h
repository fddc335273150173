/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds counts that can't be true while they are taken, and warns of them. */
#pragma once

#include <stdbool.h>

#include "activity/activity.h"
#include "base/count.h"

struct doubts;

/* Must be called when counting begins, of each execution. */
void doubt_begin(struct activity *activity);

/* Looks at what these events, the same in each call, have counted in a row since the last call. `last`: no
 * more will come. Warns once of an event. Returns 0 or -errno of the sink. */
int doubt_counts(struct activity *activity, const struct events *events, size_t row,
		 const struct count *since, bool last);

void doubts_release(struct doubts *doubts);
