// SPDX-License-Identifier: GPL-2.0-only
#include "mem/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "host/kernel.h"

#define DEFAULT_THRESHOLD 30 /* core cycles: longer than any hit in the core's own caches; as in perf mem */

static int refuse_kind(struct refusal *refusal, const char *kind, const char *why, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse_kind(struct refusal *refusal, const char *kind, const char *why, ...)
{
	char text[256];
	va_list args;

	va_start(args, why);
	vsnprintf(text, sizeof(text), why, args);
	va_end(args);
	refuse(refusal, STATUS_REFUSED, "sampling %s", kind);
	because(refusal, "%s", text);
	return instead(refusal, "name an event that has addresses: -e page-faults -c 1");
}

static int check_pmu(const struct pmu *pmu, const char *kind, const char *event, struct refusal *refusal)
{
	if (!pmu)
		return refuse_kind(refusal, kind, "this machine has no core PMU");
	if (!pmu_has_event(pmu, event))
		return refuse_kind(refusal, kind, "the driver of this CPU's PMU has no event of them (%s)",
				   event);
	if (pmu->max_precise < 1)
		return refuse_kind(
			refusal, kind,
			"it takes PEBS, which this machine's PMU does not have (caps/max_precise)");
	return 0;
}

/* Precise level 2 gives the address of the load itself, not that of the next instruction. */
static const char *modifiers_of(const struct pmu *pmu, const struct mem_options *own)
{
	static const char *const modifiers[3][2] = {{"p", "pp"}, {"up", "upp"}, {"kp", "kpp"}};

	return modifiers[!own->side ? 0 : *own->side == 'u' ? 1 : 2][pmu->max_precise >= 2];
}

/* Writes the text of the event that the driver names for its CPU. On some CPUs loads are recorded correctly
 * only if an auxiliary event precedes this one in its group: intel_pmu_hw_config(),
 * arch/x86/events/intel/core.c. */
static int loads_event(struct plan *plan, const struct options *options, const struct pmu *pmu, char *text,
		       size_t size, struct refusal *refusal)
{
	const struct mem_options *own = options->own;
	__u64 threshold = own->ldlat ? own->ldlat : DEFAULT_THRESHOLD;
	const char *modifiers;
	char loads[128], ldlat[32] = "";

	if (check_pmu(pmu, "loads with their latency", "mem-loads", refusal))
		return -1;
	if (own->ldlat && !pmu_has_term(pmu, "ldlat"))
		return refuse_kind(refusal, "loads from a latency on",
				   "the PMU '%s' has no threshold (no term ldlat)", pmu->name);
	modifiers = modifiers_of(pmu, own);
	if (pmu_has_term(pmu, "ldlat"))
		snprintf(ldlat, sizeof(ldlat), "ldlat=%llu,", threshold);
	snprintf(loads, sizeof(loads), "%s/mem-loads,%sname=load-latency/%s", pmu->name, ldlat, modifiers);
	if (pmu_has_event(pmu, "mem-loads-aux"))
		snprintf(text, size, "{%s/mem-loads-aux/%s,%s}", pmu->name, own->side ? own->side : "",
			 loads);
	else
		snprintf(text, size, "%s", loads);
	snprintf(plan->default_why, sizeof(plan->default_why), "loads");
	if (*ldlat)
		snprintf(plan->default_why, sizeof(plan->default_why),
			 "loads that take longer than %llu core cycles%s", threshold,
			 own->ldlat ? "" : "; --ldlat chooses another threshold");
	return 0;
}

static int stores_event(struct plan *plan, const struct options *options, const struct pmu *pmu, char *text,
			size_t size, struct refusal *refusal)
{
	size_t used = strlen(plan->default_why);

	if (check_pmu(pmu, "stores", "mem-stores", refusal))
		return -1;
	snprintf(text, size, "%s/mem-stores,name=stores/%s", pmu->name, modifiers_of(pmu, options->own));
	snprintf(plan->default_why + used, sizeof(plan->default_why) - used, "%s",
		 used ? "; and stores" : "stores");
	return 0;
}

/* Adds a further way out to the refusal of a PMU. */
static int offer_machine(const struct host *host, const char *option, struct refusal *refusal)
{
	size_t used = strlen(refusal->remedy);

	if (host_may_be_emulated(host))
		snprintf(refusal->remedy + used, sizeof(refusal->remedy) - used,
			 "; or measure on an emulated machine: %s", option);
	return -1;
}

/* Chooses loads by default. To find shared lines, stores are added if the PMU can sample them. */
static int default_events(struct plan *plan, const struct options *options, struct host *host, char *text,
			  size_t size, struct refusal *refusal)
{
	const struct mem_options *own = options->own;
	const struct pmu *pmu = host_core_pmu(host);
	bool loads = own->loads || !own->stores;
	bool stores = own->stores || (own->shared && !own->loads && pmu && pmu_has_event(pmu, "mem-stores"));
	size_t used = 0;

	if (loads && loads_event(plan, options, pmu, text, size, refusal))
		return offer_machine(host, "--machine", refusal);
	if (!stores)
		return 0;
	if (loads) {
		used = strlen(text);
		text[used++] = ',';
	}
	if (!stores_event(plan, options, pmu, text + used, size - used, refusal))
		return 0;
	return offer_machine(host, "--machine=sandybridge", refusal); /* Nehalem samples no stores */
}

/* The kernel's driver takes from the PEBS record only what is requested. */
void ask_for_load(struct event *event, bool physical)
{
	EVENT_SET(event, sample_type,
		  (event->attr.sample_type & PERF_SAMPLE_CALLCHAIN) | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			  PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC,
		  "address, latency and source of the load, for the program; no ring is used");
	if (physical)
		EVENT_SET(event, sample_type, event->attr.sample_type | PERF_SAMPLE_PHYS_ADDR,
			  "--by phys_page: the kernel looks up where in memory the address lies");
}

/* If the record does not have these bits, the kernel may nevertheless report them, with every access as a TLB
 * hit (pebs_no_tlb, intel/core.c). */
static int refuse_access_keys(const struct options *options, const struct host *host, struct refusal *refusal)
{
	const struct known_kernel *kernel = host->events ? host->events->kernel : NULL;

	if (!kernel || !kernel->nr_precise || kernel->access_bits ||
	    !(list_has(options->by, "tlb") || list_has(options->by, "lock")))
		return 0;
	refuse(refusal, STATUS_USAGE, "option --by '%s'", options->by);
	because(refusal, "this CPU's PEBS records have no TLB and no lock bits");
	according(refusal, "%s", kernel->record ? kernel->record : kernel->source);
	return instead(refusal,
		       "leave them out, or sample an event of TLB misses with nhmtap profile: nhmtap list "
		       "--precise tlb");
}

int check_physical(const char *option, const struct options *options, const struct host *host,
		   struct refusal *refusal)
{
	if (kernel_at_least(host, 6, 3))
		return 0;
	refuse(refusal, STATUS_REFUSED, "option %s '%s'", option, options->by);
	because(refusal,
		"before Linux 6.3 the kernel looks physical addresses up only once the program has "
		"run; this is %s",
		host->release);
	return instead(refusal, "take %s page; or perf mem record -p, which keeps each sample", option);
}

/* Whether keys are asked for that tell data by names. */
static bool names_data(const char *by)
{
	return list_has(by, "variable") || list_has(by, "variable_offset") || list_has(by, "type");
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
	if (options->events && (own->loads || own->stores)) {
		refuse(refusal, STATUS_USAGE, "options --event and --%s", own->loads ? "loads" : "stores");
		because(refusal, "both select what is sampled");
		return instead(refusal, "give one of them");
	}
	if (own->ldlat && own->stores && !own->loads) {
		refuse(refusal, STATUS_USAGE, "options --stores and --ldlat");
		because(refusal, "stores have no latency");
		return instead(refusal, "leave out --ldlat, or give --loads too");
	}
	if (options->call_graph && (own->shared || options->stream)) {
		refuse(refusal, STATUS_USAGE, "stacks (-g) with option --%s",
		       own->shared ? "shared" : "stream");
		because(refusal, "stacks are told apart by the interval, for its entries");
		return instead(refusal, "leave one of them out");
	}
	if (own->shared && options->stream) {
		refuse(refusal, STATUS_USAGE, "options --shared and --stream");
		because(refusal, "what streams is not aggregated by line as well");
		return instead(refusal, "use one of them");
	}
	if (own->shared && options->by && strcmp(options->by, "cacheline")) {
		refuse(refusal, STATUS_USAGE, "options --shared and --by");
		because(refusal, "--shared is about cache lines, and needs keys of its own");
		return instead(refusal, "leave out --by, or take --by cacheline");
	}
	if (options->stream && names_data(options->by)) {
		refuse(refusal, STATUS_USAGE, "option --by '%s' with --stream", options->by);
		because(refusal,
			"each sample of a stream has its address; only entries are told by names of data");
		return instead(refusal, "leave out --stream, or take other keys");
	}
	if (list_has(options->by, "phys_page") && check_physical("--by", options, host, refusal))
		return -1;
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
	char own[400];

	if (check_options(options, host, refusal))
		return -1;
	if (!text) {
		if (default_events(plan, options, host, own, sizeof(own), refusal))
			return -1;
		text = own;
	}
	if (plan_sampling(plan, text, options, host, refusal))
		return -1;
	for (size_t i = 0; i < plan->events.nr; i++)
		if (!plan->events.list[i].companion)
			ask_for_load(&plan->events.list[i], list_has(options->by, "phys_page"));
	return plan_check(plan, options, host, refusal);
}
