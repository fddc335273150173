/* SPDX-License-Identifier: GPL-2.0-only */
/* The plan of mem: samples of loads with their addresses, latencies and sources, and of stores. */
#pragma once

#include "plan/plan.h"

/* mem's own options. */
struct mem_options {
	__u64 ldlat;	  /* --ldlat, core cycles; 0 if not given */
	bool loads;	  /* --loads */
	bool stores;	  /* --stores */
	const char *side; /* --side, "u" or "k"; NULL: both, as far as permissions allow */
	bool shared;	  /* --shared */
};

/* Has the kernel take address, latency and source of an event's samples, and the physical address. */
void ask_for_load(struct event *event, bool physical);

/* Refuses physical addresses, for which `option` asks ("--by"), where the program would not see them. */
int check_physical(const char *option, const struct options *options, const struct host *host,
		   struct refusal *refusal);

/* Plans samples of loads, of stores, or of both, by the events that the PMU's driver names (mem-loads with
 * the threshold of --ldlat, mem-stores); or samples of the events that were asked for. Returns 0, or -1 with
 * the refusal. */
int plan_mem(struct plan *plan, const struct options *options, struct host *host, struct refusal *refusal);
