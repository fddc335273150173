// SPDX-License-Identifier: GPL-2.0-only
#include "mem/plan.h"

#include <stdio.h>
#include <string.h>

#include "list.h"
#include "host/kernel.h"

#define DEFAULT_THRESHOLD 30 /* core cycles: longer than any hit of the core's own caches; perf mem's */

static int refuse_loads(struct refusal *refusal, const char *why)
{
	refuse(refusal, STATUS_REFUSED, "sampling loads with their latency");
	because(refusal, "%s", why);
	return instead(refusal, "name an event that has addresses: -e page-faults -c 1");
}

static bool has_event(const struct pmu *pmu, const char *name)
{
	for (size_t i = 0; i < pmu->nr_aliases; i++)
		if (!strcmp(pmu->aliases[i].name, name))
			return true;
	return false;
}

/* The text of the event, which the driver names for its CPU; precise 2 gives the address of the load
 * itself, not of what follows it. */
static int load_latency_event(struct plan *plan, const struct options *options, struct host *host, char *text,
			      size_t size, struct refusal *refusal)
{
	const struct pmu *pmu = host_core_pmu(host);
	const struct mem_options *own = options->own;
	__u64 threshold = own->ldlat ? own->ldlat : DEFAULT_THRESHOLD;

	if (!pmu)
		return refuse_loads(refusal, "this machine has no core PMU");
	if (!has_event(pmu, "mem-loads"))
		return refuse_loads(refusal,
				    "the driver of this CPU's PMU has no event of loads (mem-loads)");
	if (has_event(pmu, "mem-loads-aux"))
		return refuse_loads(refusal,
				    "this CPU wants an event beside it that has no samples (mem-loads-aux)");
	if (pmu->max_precise < 1)
		return refuse_loads(refusal, "it takes PEBS, which this machine's PMU does not have "
					     "(caps/max_precise)");
	snprintf(text, size, "%s/mem-loads,ldlat=%llu,name=load-latency/%s%s", pmu->name, threshold,
		 own->side ? own->side : "", pmu->max_precise < 2 ? "p" : "pp");
	snprintf(plan->default_why, sizeof(plan->default_why),
		 "loads that take longer than %llu core cycles%s", threshold,
		 own->ldlat ? "" : "; --ldlat chooses another threshold");
	return 0;
}

/* The kernel's driver reads what is asked for out of the PEBS record, and no more. */
static void ask_for_load(struct event *event, bool physical)
{
	EVENT_SET(event, sample_type,
		  PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT |
			  PERF_SAMPLE_DATA_SRC,
		  "address, latency and source of the load, for the program; no ring is used");
	if (physical)
		EVENT_SET(event, sample_type, event->attr.sample_type | PERF_SAMPLE_PHYS_ADDR,
			  "--by phys_page: the kernel looks up where in memory the address lies");
}

/* Where the record does not have these bits the kernel may fill them in all the same: on Westmere every
 * access is a TLB hit (pebs_no_tlb is set for Nehalem alone, intel/core.c). */
static int refuse_access_keys(const struct options *options, const struct host *host, struct refusal *refusal)
{
	const struct known_kernel *kernel = host->events ? host->events->kernel : NULL;

	if (!kernel || kernel->access_bits ||
	    !(list_has(options->by, "tlb") || list_has(options->by, "lock")))
		return 0;
	refuse(refusal, STATUS_USAGE, "option --by '%s'", options->by);
	because(refusal, "this CPU's PEBS records have no TLB and no lock bits");
	according(refusal, "guide, Table 15; they came with Sandy Bridge");
	return instead(refusal, "sample MEM_LOAD_RETIRED.DTLB_MISS:pp with nhmtap profile");
}

static int check_options(const struct options *options, const struct host *host, struct refusal *refusal)
{
	const struct mem_options *own = options->own;

	if (options->events && own->ldlat) {
		refuse(refusal, STATUS_USAGE, "options --event and --ldlat");
		because(refusal, "the threshold is part of the event");
		return instead(refusal,
			       "write cpu/mem-loads,ldlat=%llu/pp, or leave out "
			       "--event",
			       own->ldlat);
	}
	if (own->shared && own->stream) {
		refuse(refusal, STATUS_USAGE, "options --shared and --stream");
		because(refusal, "what streams is not aggregated by line as well");
		return instead(refusal, "use one of them");
	}
	if (own->shared && options->by && strcmp(options->by, "cacheline")) {
		refuse(refusal, STATUS_USAGE, "options --shared and --by");
		because(refusal, "--shared is about cache lines, and needs keys of its own");
		return instead(refusal, "leave out --by, or take --by cacheline");
	}
	if (list_has(options->by, "phys_page") && !kernel_at_least(host, 6, 3)) {
		refuse(refusal, STATUS_REFUSED, "option --by '%s'", options->by);
		because(refusal,
			"before Linux 6.3 the kernel looks physical addresses up only once the program has "
			"run; this is %s",
			host->release);
		return instead(refusal, "take --by page; or perf mem record -p, which keeps each sample");
	}
	if (refuse_access_keys(options, host, refusal))
		return -1;
	if (!options->events || !own->side)
		return 0;
	refuse(refusal, STATUS_USAGE, "options --event and --side");
	because(refusal, "the side is a modifier of the event");
	return instead(refusal, "write it behind the event, as in page-faults:%s", own->side);
}

int plan_mem(struct plan *plan, const struct options *options, struct host *host, struct refusal *refusal)
{
	const char *text = options->events;
	char loads[128];

	if (check_options(options, host, refusal))
		return -1;
	if (!text) {
		if (load_latency_event(plan, options, host, loads, sizeof(loads), refusal))
			return -1;
		text = loads;
	}
	if (plan_sampling(plan, text, options, host, refusal))
		return -1;
	for (size_t i = 0; i < plan->events.nr; i++)
		ask_for_load(&plan->events.list[i], list_has(options->by, "phys_page"));
	return plan_check(plan, options, host, refusal);
}
