/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Assignment of counters to events that are to be counted at the same time. The kernel assigns them by a
 * table of its own (x86_schedule_events(), arch/x86/events/core.c), which is kernel.json in events/. The
 * functions here find out whether an assignment exists, and give one.
 */
#pragma once

#include <stddef.h>

#include "event/event.h"

#define PLACED_NOWHERE (-1) /* no counter is needed: a software event */
#define PLACED_FIXED   32   /* + the number of the fixed counter, as the kernel numbers them */

/*
 * Assigns counters to `nr` events, at most PLACEMENT_MOST. host->events must be the table of the CPU. Writes
 * the counter of each event to `counters`. Returns -1 if all events have one, else the index of the first
 * that has none: the events before it can be placed. `taken` is the set of counters that are in use already;
 * its bits are those of placement_choices().
 */
#define PLACEMENT_MOST 64
int placement_find(struct host *host, const struct event *events, size_t nr, unsigned long long taken,
		   int *counters);

/* The set of counters that an event can use: bit i is general counter i, bit 32 + i fixed counter i. 0 if it
 * needs no counter. */
unsigned long long placement_choices(struct host *host, const struct event *event);
