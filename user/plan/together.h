/* SPDX-License-Identifier: GPL-2.0-only */
/* Conflicts between the plans of activities that run at the same time: resources of a core that they must
 * share in turns, or that only one of them can have. Pure. */
#pragma once

#include "plan/plan.h"

#define TOGETHER_MOST 64 /* the most plans */

/* A plan, and its name. */
struct party {
	const char *name;
	const struct plan *plan;
};

#define TURN_COUNTERS "counters"

/* A resource that a plan shares with others in turns. */
struct turn {
	const char *what; /* TURN_COUNTERS, "offcore_rsp", "load_latency", "branch_filter" */
	const char *why;
	unsigned long long with; /* one bit for each of the other parties */
};

#define TURN_KINDS 4

/* Writes what party `which` shares with others in turns, at most TURN_KINDS elements. Returns their
 * number. */
size_t together_turns(const struct party *parties, size_t nr, size_t which, struct host *host,
		      struct turn *turns);

/* The counters that other parties' events hold against those of party `which`: the kernel schedules pinned
 * events first, then those of CPUs, then those of tasks (ctx_sched_in(), kernel/events/core.c). 0 if the ones
 * that go first are more than there are counters: then they take turns, and nobody knows what they leave. */
unsigned long long together_held(const struct party *parties, size_t nr, size_t which, struct host *host);

/* Refuses a plan that the kernel would refuse because of another one. Returns 0, or -1 with the refusal. */
int together_check(const struct party *parties, size_t nr, size_t which, struct host *host,
		   struct refusal *refusal);
