/* SPDX-License-Identifier: GPL-2.0-only */
/* Warnings for readers of the records, in a warning record and on stderr. */
#pragma once

#include <stdbool.h>

#include "activity/activity.h"
#include "aggregation/table_reader.h"

struct samples;

/*
 * Warns if an interval has lost more than one in a hundred of an event's samples, of their stacks or of their
 * branches because a table was full. *warned, false at first, ensures that this is said only once. Returns 0
 * or -errno of the sink.
 */
int warn_of_loss(struct activity *activity, const char *event, const struct samples *samples,
		 const struct reading *reading, bool *warned);

/* Warns, once per event, that keys were summed up in `rest` because an event keeps at most `most` of them.
 * Returns 0 or -errno of the sink. */
int warn_of_keys(struct activity *activity, const char *event, __u64 nr_shed, size_t most, bool *warned);

/* Says on stderr how event names were understood if that may be surprising: something was added to a name, or
 * libpfm4 uses the name for something else. */
void warn_of_spellings(const struct activity *activity);

struct clock_lead;

/*
 * Warns if the system's clock was set in the interval that ends. Durations come from another clock, but times
 * do not. A change of less than 10 ms plus a thousandth of the interval is ignored, because time
 * synchronization causes such changes (adjtimex(2) slews by at most 500 ppm). Returns 0 or -errno of the
 * sink.
 */
int warn_of_clock(struct activity *activity, const struct clock_lead *now);

/* Warns of counters in model-specific registers that this run has lost, once each. Returns 0 or -errno of the
 * sink. */
int warn_of_registers(struct activity *activity);

/* Warns, once per session, that it costs more than its share of a CPU, and that fewer samples do not help.
 * Returns 0 or -errno of the sink. */
int warn_of_share(struct activity *activity);

/* Warns that an event's count can't be true. Returns 0 or -errno of the sink. */
int warn_of_doubt(struct activity *activity, const char *event, const char *why);

/* Warns, at the end of a command, if the kernel has ended the counting of the command, or of a child. Returns
 * 0 or -errno of the sink. */
int warn_of_unfollowed(struct activity *activity);

/* Looks whether the kernel has taken the events of a process or thread away that goes on, and says so once
 * for each. */
int warn_of_taken(struct activity *activity);

/* Warns, at the end of the first interval or without one (run --check), of patterns and ids of containers
 * that no cgroup fits, with the cgroups whose paths are alike. Returns 0 or -errno of the sink. */
int warn_of_unfit_patterns(struct activity *activity);

/* Warns, once, that cgroups that a pattern fits were found late, or were gone before. Returns 0 or -errno of
 * the sink. */
int warn_of_late_cgroups(struct activity *activity);
