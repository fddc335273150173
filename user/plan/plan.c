// SPDX-License-Identifier: GPL-2.0-only
#include "base/array.h"
#include "plan/plan.h"

#include "event/encoding.h"
#include "event/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/kernel.h"
#include "plan/grouping.h"
#include "plan/neighbours.h"
#include "plan/rules.h"
#include "plan/modelled.h"
#include "plan/sides.h"
#include "plan/units.h"

/* As in perf: if the user is not permitted to measure the kernel, the kernel is excluded, and the event's
 * name tells so. */
static void respect_paranoid(struct event *event, const struct host *host)
{
	size_t used = strlen(event->name);

	if (event->privilege_given || event->sideless || host_may_count_kernel(host))
		return;
	EVENT_SET(event, exclude_kernel, 1, "perf_event_paranoid is %d and CAP_PERFMON is missing",
		  host->perf_event_paranoid);
	EVENT_SET(event, exclude_hv, 1, "as exclude_kernel");
	snprintf(event->name + used, sizeof(event->name) - used, "%s",
		 strchr(event->name, ':') || strchr(event->name, '/') ? "u" : ":u");
}

/* Numbers events of the same name: the same one in two groups, that of a metric beside a requested one, or
 * two with one name=. Each has a count of its own, and records and exports must not take them for one. */
static void number_names(struct events *events)
{
	for (size_t i = 0; i < events->nr; i++) {
		events->list[i].nth = 1;
		for (size_t j = 0; j < i; j++)
			events->list[i].nth += !strcmp(events->list[i].name, events->list[j].name);
	}
}

void plan_common(struct plan *plan, const struct host *host)
{
	const struct target *target = &plan->target;
	bool on_exec = target_is_command(target) && !target->begins_off;

	for (size_t i = 0; i < plan->events.nr; i++) {
		struct event *event = &plan->events.list[i];
		bool leader = event_leads(&plan->events, i);
		/* A counter that several CPUs share can't tell processes apart. */
		bool of_cpus = target->cpus_given || event->cpus;

		respect_paranoid(event, host);
		EVENT_SET(event, read_format, PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
			  "a count travels with the time it was enabled and the time it ran");
		/* The kernel checks whether the group fits by its enabled events only, so siblings must not
		 * be disabled. */
		EVENT_SET(event, disabled, leader,
			  leader ? "everything is attached before it is switched on"
				 : "the leader switches the group; the kernel checks enabled ones");
		if (!of_cpus)
			EVENT_SET(event, inherit, 1, "threads and children to come are followed");
		if (on_exec && !of_cpus && leader)
			EVENT_SET(event, enable_on_exec, 1, "counting begins with COMMAND itself");
	}
	number_names(&plan->events);
}

static int refuse_microcode(const struct host *host, __u32 needed, struct refusal *refusal)
{
	if (!needed)
		because(refusal, "the kernel keeps PEBS off on stepping %u of this CPU, for an erratum",
			host->cpu.stepping);
	else
		because(refusal,
			"the kernel keeps PEBS off with this CPU's microcode, 0x%x, for an erratum; it works "
			"from 0x%x on",
			host->cpu.microcode, needed);
	according(refusal, "kernel, intel_snb_pebs_broken()");
	return instead(refusal,
		       needed ? "load newer microcode (package intel-microcode), or leave out the modifier p"
			      : "leave out the modifier p");
}

/* Whether the event depends on the driver's count. The kernel chooses the periods of a frequency by it. */
static bool counts_on_core(const struct event *event, const struct pmu *core)
{
	__u32 type = event->attr.type;

	return (!event->attr.sample_period || event->attr.freq) &&
	       (type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE || type == PERF_TYPE_RAW ||
		(core && type == core->type));
}

static int check_counts(const struct plan *plan, struct host *host, struct refusal *refusal)
{
	const struct pmu *core = host_core_pmu(host);

	for (size_t i = 0; kernel_miscounts(host) && i < plan->events.nr; i++) {
		if (!counts_on_core(&plan->events.list[i], core))
			continue;
		refuse(refusal, STATUS_REFUSED, "event '%s'", plan->events.list[i].name);
		refusal->error = EOPNOTSUPP;
		because(refusal, "on NetBurst Linux counts wrongly from 6.1 on, by 2^39 and more: a counter "
				 "begins where its last use has ended");
		according(refusal, "kernel, p4_pmu_set_period()");
		return instead(refusal, "count events of 'netburst' past the driver, with --msr (nhmtap "
					"list), or sample it with a fixed period, which is right from the "
					"second sample on (nhmtap profile -c); --force insists");
	}
	return 0;
}

/* Refuses precise levels that the PMU lacks. Some drivers open such events nevertheless, and sample
 * imprecisely: p4_hw_config() does not look at precise_ip. */
static int check_precise(const struct plan *plan, struct host *host, struct refusal *refusal)
{
	const struct pmu *pmu = host_core_pmu(host);
	__u32 needed;

	for (size_t i = 0; pmu && pmu->max_precise >= 0 && i < plan->events.nr; i++) {
		const struct perf_event_attr *attr = &plan->events.list[i].attr;
		bool core = attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE ||
			    attr->type == PERF_TYPE_RAW || attr->type == pmu->type;

		if (!core || attr->precise_ip <= (unsigned int)pmu->max_precise)
			continue;
		refuse(refusal, STATUS_REFUSED, "event '%s'", plan->events.list[i].name);
		refusal->error = EOPNOTSUPP;
		if (!pmu->max_precise && microcode_keeps_pebs_off(host, &needed))
			return refuse_microcode(host, needed, refusal);
		because(refusal, "the PMU has no precise sampling of level %d (caps/max_precise is %d)",
			(int)attr->precise_ip, pmu->max_precise);
		return instead(refusal, "leave out the modifier p%s",
			       pmu->max_precise ? ", or lower it" : "");
	}
	return 0;
}

int plan_check(struct plan *plan, const struct options *options, struct host *host, struct refusal *refusal)
{
	if (check_precise(plan, host, refusal) || (!options->force && check_counts(plan, host, refusal)) ||
	    neighbours_check(&plan->events, &plan->target, host, refusal) ||
	    units_check(&plan->events, options, refusal))
		return -1;
	sides_settle(&plan->events, host);
	modelled_settle(&plan->events, host);
	return rules_check(&plan->events, &plan->target, host, options->force, refusal);
}

/* The defaults of perf stat. */
static const char *const default_counted[] = {
	"task-clock", "context-switches", "cpu-migrations", "page-faults",
	"cycles",     "instructions",	  "branches",	    "branch-misses",
};

/* Why a machine does not have a default event, as the end of default_why; NULL if it has. */
static const char *without(struct host *host, const struct generic_event *event)
{
	if (event->type != PERF_TYPE_HARDWARE)
		return NULL;
	if (kernel_miscounts(host))
		return ", without those of the core PMU, which this kernel counts wrongly";
	if (!host_core_pmu(host))
		return ", without those that need the core PMU this machine lacks";
	return generic_missing(host, event) < 0 ? NULL : ", without those that this CPU lacks";
}

const char *plan_default_counted(struct plan *plan, struct host *host)
{
	const char *why = "";
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(default_counted); i++) {
		const char *lacks = without(host, generic_event_find(default_counted[i]));

		if (lacks)
			why = lacks;
		else
			used += snprintf(plan->default_events + used, sizeof(plan->default_events) - used,
					 "%s%s", used ? "," : "", default_counted[i]);
	}
	snprintf(plan->default_why, sizeof(plan->default_why), "perf stat's default events%s", why);
	return plan->default_events;
}

int plan_events(struct plan *plan, const char *events, const char *metrics, struct host *host,
		struct refusal *refusal)
{
	if (events && events_parse(events, host, &plan->events, refusal))
		return -1;
	return metrics ? metrics_plan(&plan->metrics, metrics, host, &plan->events, refusal) : 0;
}

void plan_groups(struct plan *plan, struct host *host)
{
	grouping_form(&plan->events, host);
	grouping_place(&plan->events, host);
	units_place(&plan->events);
}

int plan_counts(struct plan *plan, const struct options *options, struct host *host, struct refusal *refusal)
{
	for (size_t i = 0; i < plan->events.nr; i++)
		event_leave_samples_out(&plan->events.list[i]);
	plan_groups(plan, host);
	plan_common(plan, host);
	return plan_check(plan, options, host, refusal);
}

int plan_counting(struct plan *plan, const struct options *options, struct host *host,
		  struct refusal *refusal)
{
	const char *text = options->events;

	if (target_plan(&plan->target, options, host, refusal))
		return -1;
	if (!text && !options->metrics)
		text = plan_default_counted(plan, host);
	if (plan_events(plan, text, options->metrics, host, refusal))
		return -1;
	return plan_counts(plan, options, host, refusal);
}

void plan_release(struct plan *plan)
{
	events_release(&plan->events);
	metrics_release(&plan->metrics);
	free(plan->expectations.list);
	plan->expectations = (struct expectations){0};
	target_release(&plan->target);
}
