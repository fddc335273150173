/* SPDX-License-Identifier: GPL-2.0-only */
/* Events that count nothing on the side (user's, kernel's, guests') that is asked for, or that count the same
 * on any side. The sides of the kernel's own events are in tables/names.c. Reads tracefs for tracepoints. */
#pragma once

#include "event/event.h"
#include "host/host.h"
#include "tables/names.h"

/* On which sides the kernel counts an event. */
struct sides {
	enum event_sides sides;
	char why[200];	    /* why, unless it counts on both: the rest of "the event …" */
	const char *source; /* and the function of the kernel that shows it; NULL: it counts on both */
};

/* Says that a tracepoint counts on both sides if the event excludes neither: then nothing depends on it. */
void sides_of(const struct event *event, const struct host *host, struct sides *sides);

/* Sets `never` of events that can't count on the sides that they have got, and notes on those that count all
 * sides whatever is asked for. Must be called when the events are complete: sides matter to the samples of a
 * clock. */
void sides_settle(struct events *events, const struct host *host);

/* Whether an event would count nothing, because it happens on a side that it excludes. */
bool sides_missed(const struct event *event, const struct sides *sides);

/* Whether an event excludes both sides that an x86 CPU has: ":h" alone. */
bool sides_all_excluded(const struct event *event, const struct host *host);

/* Whether an event asks for guests alone, which the kernel ignores where it counts by itself. */
bool sides_of_guests_ignored(const struct event *event);

/* Whether an event excludes anything: a side, guests, the host, the idle task. */
bool sides_any_excluded(const struct event *event);

/* How an unprivileged user gets to count in the kernel: "sysctl …, or …". */
const char *sides_remedy(const struct host *host);
