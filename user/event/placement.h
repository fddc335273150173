/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which counters events take that are to be counted at the same time. The kernel places them by its
 * own table (x86_schedule_events(), arch/x86/events/core.c), which events/ has as kernel.json; this
 * finds whether there is a way, and one of them.
 */
#ifndef NHMTAP_PLACEMENT_H
#define NHMTAP_PLACEMENT_H

#include <stddef.h>

#include "event/event.h"

#define PLACED_NOWHERE (-1) /* no counter is needed: a software event */
#define PLACED_FIXED   32   /* + the number of the fixed counter, as the kernel numbers them */

/*
 * Places `nr` events (at most PLACEMENT_MOST) of a CPU that host->events describes. Writes each
 * event's counter to counters. Returns -1 if all have one, else the index of the first that has
 * none: the events before it can be placed. `taken` are counters that others hold, bits as above.
 */
#define PLACEMENT_MOST 64
int placement_find(struct host *host, const struct event *events, size_t nr, unsigned long long taken,
		   int *counters);

/* The counters that an event may take: bit i is general counter i, bit 32 + i fixed counter i; 0 for
 * an event that needs none. */
unsigned long long placement_choices(struct host *host, const struct event *event);

#endif
