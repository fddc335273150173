/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The plans of activities that go at the same time: what they want of a core and it has once, they have
 * in turns, or not at all. Pure.
 */
#ifndef NHMTAP_TOGETHER_H
#define NHMTAP_TOGETHER_H

#include "plan/plan.h"

#define TOGETHER_MOST 64 /* plans */

/* A plan, and what it is called. */
struct party {
	const char *name;
	const struct plan *plan;
};

/* What a plan has in turns with others. */
struct turn {
	const char *what; /* "counters", "offcore_rsp", "load_latency", "branch_filter" */
	const char *why;
	unsigned long long with; /* a bit for each of the other parties */
};

#define TURN_KINDS 4

/* Writes what party `which` has in turns with others, at most TURN_KINDS; returns how many. */
size_t together_turns(const struct party *parties, size_t nr, size_t which, struct host *host,
		      struct turn *turns);

/* Refuses a plan that the kernel would refuse because of another one. Returns 0, or -1 with the refusal. */
int together_check(const struct party *parties, size_t nr, size_t which, struct host *host,
		   struct refusal *refusal);

#endif
