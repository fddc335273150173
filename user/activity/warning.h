/* SPDX-License-Identifier: GPL-2.0-only */
/* What a reader of the records has to know besides their values: in a warning record and on stderr. */
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

/* Says on stderr how events were understood where that may surprise: what was added to a name, or that
 * libpfm4 uses a name for something else. */
void warn_of_spellings(const struct activity *activity);

struct clock_lead;

/*
 * Warns that somebody has set the system's clock in the interval that ends. Durations come from another
 * clock; times do not. A change of less than 10 ms plus a thousandth of the interval is not reported: time
 * synchronization causes such changes (adjtimex(2) slews by at most 500 ppm). Returns 0 or -errno of the
 * sink.
 */
int warn_of_clock(struct activity *activity, const struct clock_lead *now);

/* Warns of counters that take model-specific registers and are lost to this run, once each. Returns 0 or
 * -errno of the sink. */
int warn_of_registers(struct activity *activity);

/* Warns, once a session, that it costs more than its share of a CPU, and that fewer samples do not help.
 * Returns 0 or -errno of the sink. */
int warn_of_share(struct activity *activity);

#endif
