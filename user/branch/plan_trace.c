// SPDX-License-Identifier: GPL-2.0-only
/* Plans a branch trace (BTS): the hardware writes every branch of a thread. */
#include "base/list.h"
#include "branch/plan.h"
#include "branch/tracing.h"

#include <string.h>

#include "event/branch_filter.h"
#include "host/kernel.h"
#include "host/processor.h"

static int refuse_beside(const char *option, const char *why, const char *remedy, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "option %s with --trace", option);
	because(refusal, "%s", why);
	return instead(refusal, "%s", remedy);
}

/* Refuses options that sampling has and a trace lacks. */
static int check_options(const struct options *options, struct refusal *refusal)
{
	if (options->all_cpus || options->cpus || options->cgroups)
		return refuse_beside(options->all_cpus ? "--all-cpus"
				     : options->cpus   ? "--cpu"
						       : "--cgroup",
				     "a trace's branches have neither a time nor a process with them, so "
				     "those of a whole CPU could not be told apart",
				     "trace threads: -p PID, or -- COMMAND", refusal);
	if (options->events)
		return refuse_beside(
			"--event",
			"a trace has every branch, not samples of an event; and the CPU can't sample with "
			"the last branch record or precisely at level 2 beside it (EBUSY)",
			"leave out one of them", refusal);
	if (options->period || options->frequency)
		return refuse_beside(options->period ? "--count" : "--freq",
				     "a trace has every branch, not one of so many", "leave it out", refusal);
	if (options->where)
		return refuse_beside("--where", "no program looks at a trace's branches", "leave out --trace",
				     refusal);
	if (options->call_graph)
		return refuse_beside("-g, or --by stack,",
				     "a trace's branches come without the stack that they were taken in",
				     "leave out --trace", refusal);
	if (list_has(options->by, "callpair"))
		return refuse_beside("--by callpair",
				     "pairs of caller and callee are made from calls, and a trace has all "
				     "kinds of branches",
				     "take --by function, or leave out --trace", refusal);
	if (list_has(options->by, "cgroup"))
		return refuse_beside("--by cgroup", "a trace does not say in which cgroup its thread was",
				     "for the thread's process and name: --by edge,pid,comm", refusal);
	return 0;
}

/* The number of bytes at which the reader is woken: a small part of a buffer of the default size, so that it
 * has time until the rest is full. */
#define WATERMARK (64 << 10)

/* The driver for version 1 (core_pmu, arch/x86/events/intel/core.c) has no handler for the interrupt of BTS,
 * so the buffer is read only when the thread is switched out. */
static int check_driver(const struct host *host, struct refusal *refusal)
{
	struct perfmon perfmon;

	if (!processor_perfmon(host, &perfmon) || perfmon.version != 1)
		return 0;
	refuse(refusal, STATUS_REFUSED, "a trace of every branch (--trace)");
	because(refusal, "on a CPU with version 1 of architectural perfmon the kernel does not empty the "
			 "buffer of branches when it is full, and what follows is lost without a word");
	according(refusal, "kernel, core_pmu: x86_pmu_handle_irq()");
	return instead(refusal, "count branches with nhmtap stat -e branches");
}

int plan_trace(struct plan *plan, const struct options *options, struct host *host, struct refusal *refusal)
{
	char sides[4], events[64];

	if (branch_check_by(options, refusal) || check_options(options, refusal) ||
	    target_plan(&plan->target, options, host, refusal) ||
	    branch_filter_sides(options->filter, sides, refusal))
		return -1;
	if (!host_pmu(host, "intel_bts")) {
		refuse(refusal, STATUS_REFUSED, "a trace of every branch (--trace)");
		return kernel_lacks_pmu(host, "intel_bts", refusal);
	}
	if (check_driver(host, refusal))
		return -1;
	snprintf(events, sizeof(events), "intel_bts//%s,task-clock", sides);
	if (events_parse(events, host, &plan->events, refusal))
		return -1;
	snprintf(plan->default_why, sizeof(plan->default_why),
		 "every branch; the clock tells how long the threads ran, with the trace or without");
	plan_common(plan, host);
	EVENT_SET(&plan->events.list[0], aux_watermark, WATERMARK,
		  "it is read long before its buffer is full");
	/* The kernel does not map the buffer of an inherited event (perf_mmap(), kernel/events/core.c). */
	for (size_t i = 0; i < plan->events.nr; i++)
		EVENT_SET(&plan->events.list[i], inherit, 0, "a trace is of one thread");
	return 0;
}
