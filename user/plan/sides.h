/* SPDX-License-Identifier: GPL-2.0-only */
/* Events that count nothing on the side (user's, kernel's) that is asked for, or that count the same on any
 * side. The sides of each event are in tables/names.c. Pure. */
#ifndef NHMTAP_SIDES_H
#define NHMTAP_SIDES_H

#include "event/event.h"
#include "host/host.h"

/* Sets `never` of events that can't count on the sides that they have got, and notes on clocks that count all
 * sides whatever is asked for. Must be called when the events are complete: sides matter to the samples of a
 * clock. */
void sides_settle(struct events *events, const struct host *host);

/* Whether an event would count nothing, because it happens on a side that it excludes. */
bool sides_missed(const struct event *event);

/* Whether an event excludes both sides that an x86 CPU has: ":h" alone. */
bool sides_all_excluded(const struct event *event, const struct host *host);

/* How an unprivileged user gets to count in the kernel: "sysctl …, or …". */
const char *sides_remedy(const struct host *host);

#endif
