/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's tracepoints, by their numbers in perf_event_attr. */
#pragma once

#include "host/host.h"

struct tracepoint {
	char name[256]; /* "sched:sched_switch" */
	bool of_user;	/* it is passed with the user's registers: a system call, or a uprobe */
};

/* Looks up a tracepoint in tracefs. Returns false if there is none of this number, or if this user may not
 * read tracefs; then `tracepoint` is unchanged. */
bool tracepoint_find(const struct host *host, __u64 id, struct tracepoint *tracepoint);
