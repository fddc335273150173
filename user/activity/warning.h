/* SPDX-License-Identifier: GPL-2.0-only */
/* What an activity loses to full tables, told once for each event: in a warning record and on stderr. */
#ifndef NHMTAP_WARNING_H
#define NHMTAP_WARNING_H

#include <stdbool.h>

#include "activity/activity.h"
#include "collection/table_reader.h"

struct samples;

/*
 * Warns of an interval that has lost more than one in a hundred of an event's samples, of their stacks or
 * of their branches to a full table. *warned, false at first, keeps it from being said again. Returns 0 or
 * -errno of the sink.
 */
int warn_of_loss(struct activity *activity, const char *event, const struct samples *samples,
		 const struct reading *reading, bool *warned);

/* Says on stderr what a reader of the events' spellings should know: what was taken that was not named,
 * or that libpfm4 means another thing by a name. */
void warn_of_spellings(const struct activity *activity);

#endif
