/* SPDX-License-Identifier: GPL-2.0-only */
/* The highest pace at which events can occur. It limits what may have happened while an event had no counter.
 */
#pragma once

#include "event/event.h"
#include "host/host.h"

/* How often the event can occur in a cycle of a core, or of the clock of its unit, over some microseconds. It
 * is a limit, not what real programs reach. */
double event_most_per_cycle(const struct event *event, struct host *host);

/* The cycles that a core has in a ns, from the time stamp counter: its counts at two times, and the ns
 * between these. That is the clock without turbo. It adds an eighth on most servers, and a program that does
 * nothing but one thing, in phases of just the length that is hardest to see, is not to be expected as well;
 * where counts show a faster clock, the caller knows better. */
double cycles_per_ns(__u64 stamp_before, __u64 stamp_after, __u64 ns);

/* The time stamp counter. */
__u64 time_stamp(void);
