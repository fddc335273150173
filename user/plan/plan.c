// SPDX-License-Identifier: GPL-2.0-only
#include "plan/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event/branch_filter.h"
#include "host/kernel.h"
#include "plan/common.h"
#include "plan/expect.h"
#include "plan/grouping.h"
#include "plan/matrix.h"
#include "plan/neighbours.h"
#include "plan/rules.h"
#include "shared.h"

#define DEFAULT_FREQUENCY 4000 /* Hz; perf record's */

/* --- events ----------------------------------------------------------------------------------- */

/* As perf does it: what a user may not see of the kernel is left out, and the name says so. */
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

void plan_common(struct plan *plan, const struct host *host)
{
	const struct target *target = &plan->target;
	bool on_exec = target->command && !target->begins_off;

	for (size_t i = 0; i < plan->events.nr; i++) {
		struct event *event = &plan->events.list[i];
		bool leader = event_leads(&plan->events, i);
		/* What several CPUs share has no processes. */
		bool of_cpus = target->cpus_given || event->cpus;

		respect_paranoid(event, host);
		EVENT_SET(event, read_format,
			  PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
			  "a count travels with the time it was enabled and the time it ran");
		/* A disabled sibling is left out of the kernel's check whether the group fits. */
		EVENT_SET(event, disabled, leader,
			  leader ? "everything is attached before it is switched on"
				 : "the leader switches the group; the kernel checks enabled ones");
		if (!of_cpus)
			EVENT_SET(event, inherit, 1, "threads and children to come are followed");
		if (on_exec && !of_cpus && leader)
			EVENT_SET(event, enable_on_exec, 1, "counting begins with COMMAND itself");
	}
}

/* What is known of the events and, for a target that is there, whether they can count it. */
static int check(const struct plan *plan, const struct options *options, struct host *host,
		 struct refusal *refusal)
{
	if (neighbours_check(&plan->events, &plan->target, host, refusal))
		return -1;
	return rules_check(&plan->events, &plan->target, host, options->force, refusal);
}

static int refuse_frequency(const struct event *event, const struct host *host, __u64 frequency,
			    struct refusal *refusal)
{
	refuse(refusal, STATUS_REFUSED, "event '%s' at %llu Hz", event->name, frequency);
	refusal->error = EINVAL;
	because(refusal, "kernel.perf_event_max_sample_rate is %ld", host->max_sample_rate);
	return instead(refusal, "ask for -F %ld, or: sysctl kernel.perf_event_max_sample_rate=%llu",
		       host->max_sample_rate, frequency);
}

static int plan_sampling(struct event *event, const struct options *options,
			 const struct host *host, struct refusal *refusal)
{
	__u64 frequency = options->frequency;

	if (options->period && !event->sampling_given) {
		EVENT_SET(event, freq, 0, "--count");
		EVENT_SET(event, sample_period, options->period, "--count");
	} else if (!event->sampling_given) {
		/* A default must work everywhere: it gives way to the machine's limit. */
		if (!frequency)
			frequency = host->max_sample_rate < DEFAULT_FREQUENCY ? host->max_sample_rate
									      : DEFAULT_FREQUENCY;
		EVENT_SET(event, freq, 1, options->frequency ? "--freq" : "the default");
		EVENT_SET(event, sample_freq, frequency, options->frequency ? "--freq" : "the default");
	}
	if (event->attr.freq && event->attr.sample_freq > (__u64)host->max_sample_rate)
		return refuse_frequency(event, host, event->attr.sample_freq, refusal);

	EVENT_SET(event, sample_type, PERF_SAMPLE_IP, "the program reads the registers; no ring is used");
	/* Otherwise most PEBS records go past the program: arch/x86/events/intel/core.c,
	 * intel_pmu_hw_config(), batches them unless each asks for a wakeup. */
	EVENT_SET(event, wakeup_events, 1, "every PEBS record comes by the program");
	EVENT_SET(event, watermark, 0, "wakeup_events counts events");
	return 0;
}

/* A chain has a word in front of each side's frames, and the helper that reads it counts them:
 * __bpf_get_stack(), kernel/bpf/stackmap.c. */
#define CHAIN_CONTEXTS 2

static int refuse_depth(const struct host *host, __u64 depth, struct refusal *refusal)
{
	refuse(refusal, STATUS_REFUSED, "option --max-stack '%llu'", depth);
	because(refusal, "kernel.perf_event_max_stack is %ld, and a program gets %d frames less",
		host->max_stack, CHAIN_CONTEXTS);
	return instead(refusal, "ask for %ld, or: sysctl kernel.perf_event_max_stack=%llu",
		       host->max_stack - CHAIN_CONTEXTS, depth + CHAIN_CONTEXTS);
}

/* A stack is of the sides that the event is about. A program may read it from a precise sample only
 * where the kernel has taken the whole chain: perf_event_set_bpf_handler(), kernel/events/core.c. */
static int plan_stacks(struct event *event, const struct options *options, const struct host *host,
		       struct refusal *refusal)
{
	long most = host->max_stack - CHAIN_CONTEXTS;
	__u64 depth = options->max_stack;
	bool precise = event->attr.precise_ip;

	if (!depth)
		depth = most < STACK_FRAMES ? most : STACK_FRAMES;
	if (most < 1 || depth > (__u64)most)
		return refuse_depth(host, depth, refusal);
	EVENT_SET(event, sample_type, event->attr.sample_type | PERF_SAMPLE_CALLCHAIN,
		  "the program reads the registers and the calls; no ring is used");
	EVENT_SET(event, sample_max_stack, depth, options->max_stack ? "--max-stack" : "the default");
	if (event->attr.exclude_kernel && !precise)
		EVENT_SET(event, exclude_callchain_kernel, 1, "as exclude_kernel");
	if (event->attr.exclude_user && !precise)
		EVENT_SET(event, exclude_callchain_user, 1, "as exclude_user");
	return 0;
}

/* Precise cycles where the machine has them; a clock runs everywhere. */
static const char *default_profile_event(struct plan *plan, struct host *host)
{
	const struct pmu *pmu = host_core_pmu(host);

	if (!pmu) {
		snprintf(plan->default_why, sizeof(plan->default_why),
			 "this machine has no core PMU, so samples are taken by a clock");
		return "cpu-clock";
	}
	if (pmu->max_precise > 0) {
		snprintf(plan->default_why, sizeof(plan->default_why),
			 "the PMU '%s' samples precisely up to level %d", pmu->name, pmu->max_precise);
		return "cycles:P";
	}
	snprintf(plan->default_why, sizeof(plan->default_why),
		 "the PMU '%s' counts cycles, but has no precise sampling", pmu->name);
	return "cycles";
}

#define DEFAULT_STAT_EVENTS                                                                        \
	"task-clock,context-switches,cpu-migrations,page-faults,cycles,instructions,branches,"     \
	"branch-misses"
#define DEFAULT_STAT_SOFTWARE "task-clock,context-switches,cpu-migrations,page-faults"

static const char *default_stat_events(struct plan *plan, struct host *host)
{
	bool hardware = host_core_pmu(host);

	snprintf(plan->default_why, sizeof(plan->default_why), "%s",
		 hardware ? "perf stat's default events"
			  : "perf stat's default events, without those that need the core PMU "
			    "this machine lacks");
	return hardware ? DEFAULT_STAT_EVENTS : DEFAULT_STAT_SOFTWARE;
}

/* Events by name, and those of metrics; either may be NULL. */
static int plan_counts(struct plan *plan, const char *events, const char *metrics, struct host *host,
		       struct refusal *refusal)
{
	if (events && events_parse(events, host, &plan->events, refusal))
		return -1;
	return metrics ? metrics_plan(&plan->metrics, metrics, host, &plan->events, refusal) : 0;
}

int plan_stat(struct plan *plan, const struct options *options, struct host *host,
	      struct refusal *refusal)
{
	const char *text = options->events;
	char *metrics;
	int err;

	if (target_plan(&plan->target, options, host, refusal) ||
	    expect_parse(plan, options, host, refusal))
		return -1;
	if (options->repeats && !plan->target.command) {
		refuse(refusal, STATUS_USAGE, "option --repeat");
		because(refusal, "there is no command to run again");
		return instead(refusal, "give -- COMMAND");
	}
	if (!text && !options->metrics && !options->nr_expect)
		text = default_stat_events(plan, host);
	metrics = expect_metrics(plan, options);
	err = plan_counts(plan, text, metrics, host, refusal) || expect_bind(plan, host, refusal);
	free(metrics);
	if (err)
		return -1;
	grouping_form(&plan->events, host);
	grouping_place(&plan->events, host);
	plan_common(plan, host);
	return check(plan, options, host, refusal);
}

static int plan_all_sampling(struct plan *plan, const struct options *options,
			     const struct host *host, struct refusal *refusal)
{
	for (size_t i = 0; i < plan->events.nr; i++)
		if (plan_sampling(&plan->events.list[i], options, host, refusal) ||
		    (options->call_graph && plan_stacks(&plan->events.list[i], options, host, refusal)))
			return -1;
	return 0;
}

static int refuse_period_and_frequency(struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "options --count and --freq");
	because(refusal, "a sample comes either every so many events or so many times a second");
	return instead(refusal, "give one of them");
}

/* What forms of other tools have no place for. */
static int check_form(const struct plan *plan, const struct options *options, struct refusal *refusal)
{
	const char *form = options->format == FORMAT_PPROF ? "pprof" : "folded";

	if (options->format != FORMAT_FOLDED && options->format != FORMAT_PPROF)
		return 0;
	if (plan->events.nr > 1) {
		refuse(refusal, STATUS_USAGE, "option --format %s with several events", form);
		because(refusal, "it does not say of which event a stack is");
		return instead(refusal, "name one event, or write json");
	}
	if (options->format == FORMAT_FOLDED || !options->interval_ms)
		return 0;
	refuse(refusal, STATUS_USAGE, "option --interval with --format pprof");
	because(refusal, "a file of pprof's is one profile");
	return instead(refusal, "leave it out, or write json");
}

int plan_profile(struct plan *plan, const struct options *options, struct host *host,
		 struct refusal *refusal)
{
	const char *text = options->events;

	if (target_plan(&plan->target, options, host, refusal))
		return -1;
	if (options->period && options->frequency)
		return refuse_period_and_frequency(refusal);
	if (!text)
		text = default_profile_event(plan, host);
	if (events_parse(text, host, &plan->events, refusal))
		return -1;
	if (check_form(plan, options, refusal))
		return -1;
	plan_common(plan, host);
	if (plan_all_sampling(plan, options, host, refusal))
		return -1;
	return check(plan, options, host, refusal);
}

/* --- loads ------------------------------------------------------------------------------------ */

#define DEFAULT_THRESHOLD 30 /* core cycles: longer than any hit of the core's own caches; perf mem's */

static int refuse_loads(struct refusal *refusal, const char *why)
{
	refuse(refusal, STATUS_REFUSED, "sampling loads with their latency");
	because(refusal, "%s", why);
	return instead(refusal, "run it on a Nehalem, or name an event that has addresses: "
		       "-e page-faults -c 1");
}

/* The text of the event; precise 2 gives the address of the load itself, not of what follows it. */
static int load_latency_event(struct plan *plan, const struct options *options, struct host *host,
			      char *text, size_t size, struct refusal *refusal)
{
	const struct pmu *pmu = host_core_pmu(host);
	__u64 threshold = options->ldlat ? options->ldlat : DEFAULT_THRESHOLD;

	if (!pmu)
		return refuse_loads(refusal, "this machine has no core PMU");
	if (!host->events || !host->events->nr_data_sources)
		return refuse_loads(refusal, "there is no table of this CPU, so what its load-latency "
					     "records mean is not known");
	if (pmu->max_precise < 1)
		return refuse_loads(refusal, "it takes PEBS, which this machine's PMU does not have "
					     "(caps/max_precise)");
	snprintf(text, size, "cpu/event=0xb,umask=0x10,ldlat=%llu,name=load-latency/%s%s", threshold,
		 options->side ? options->side : "", pmu->max_precise < 2 ? "p" : "pp");
	snprintf(plan->default_why, sizeof(plan->default_why),
		 "loads that take longer than %llu core cycles%s", threshold,
		 options->ldlat ? "" : "; --ldlat chooses another threshold");
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

int plan_mem(struct plan *plan, const struct options *options, struct host *host,
	     struct refusal *refusal)
{
	const char *text = options->events;
	char loads[128];

	if (target_plan(&plan->target, options, host, refusal))
		return -1;
	if (options->period && options->frequency)
		return refuse_period_and_frequency(refusal);
	if (text && options->ldlat) {
		refuse(refusal, STATUS_USAGE, "options --event and --ldlat");
		because(refusal, "the threshold is part of the event");
		return instead(refusal, "write cpu/event=0xb,umask=0x10,ldlat=%llu/pp, or leave out "
			       "--event", options->ldlat);
	}
	if (options->shared && options->stream) {
		refuse(refusal, STATUS_USAGE, "options --shared and --stream");
		because(refusal, "what streams is not aggregated by line as well");
		return instead(refusal, "use one of them");
	}
	if (options->shared && options->by && strcmp(options->by, "cacheline")) {
		refuse(refusal, STATUS_USAGE, "options --shared and --by");
		because(refusal, "--shared is about cache lines, and needs keys of its own");
		return instead(refusal, "leave out --by, or take --by cacheline");
	}
	if (options_by(options, "phys_page") && !kernel_at_least(host, 6, 3)) {
		refuse(refusal, STATUS_REFUSED, "option --by '%s'", options->by);
		because(refusal, "before Linux 6.3 the kernel looks physical addresses up only once the program has "
			"run; this is %s", host->release);
		return instead(refusal, "take --by page; or perf mem record -p, which keeps each sample");
	}
	if (text && options->side) {
		refuse(refusal, STATUS_USAGE, "options --event and --side");
		because(refusal, "the side is a modifier of the event");
		return instead(refusal, "write it behind the event, as in page-faults:%s", options->side);
	}
	if (!text) {
		if (load_latency_event(plan, options, host, loads, sizeof(loads), refusal))
			return -1;
		text = loads;
	}
	if (events_parse(text, host, &plan->events, refusal))
		return -1;
	plan_common(plan, host);
	if (plan_all_sampling(plan, options, host, refusal))
		return -1;
	for (size_t i = 0; i < plan->events.nr; i++)
		ask_for_load(&plan->events.list[i], options_by(options, "phys_page"));
	return check(plan, options, host, refusal);
}

/* --- off-core requests ------------------------------------------------------------------------ */

int plan_offcore(struct plan *plan, const struct options *options, struct host *host,
		 struct refusal *refusal)
{
	struct matrix matrix;
	char *text;
	int err;

	if (target_plan(&plan->target, options, host, refusal) ||
	    matrix_make(&matrix, options, host, refusal))
		return -1;
	if (!host_core_pmu(host)) {
		refuse(refusal, STATUS_REFUSED, "off-core responses");
		because(refusal, "this machine exposes no hardware counters (is it a virtual machine?)");
		return instead(refusal, "run it on the host itself");
	}
	text = matrix_events(&matrix, host, options->side ? options->side : "");
	err = events_parse(text, host, &plan->events, refusal);
	free(text);
	if (err)
		return -1;
	plan_common(plan, host);
	return check(plan, options, host, refusal);
}

/* --- branches --------------------------------------------------------------------------------- */

/* Every branch is as good as another to be followed by a sample, so branches are what is counted. */
static const char *default_branch_event(struct plan *plan, const struct host *host)
{
	if (!host->events) {
		snprintf(plan->default_why, sizeof(plan->default_why), "a sample every so many branches");
		return "branches";
	}
	snprintf(plan->default_why, sizeof(plan->default_why),
		 "a sample every so many retired branches, by the table of %s", host->events->name);
	return "BR_INST_RETIRED.ALL_BRANCHES";
}

static int check_by(const struct options *options, struct refusal *refusal)
{
	static const char *const about[] = {"edge", "range", "function", "callpair", "line", "symbol"};

	for (size_t i = 0; i < sizeof(about) / sizeof(about[0]); i++)
		if (!options->by || options_by(options, about[i]))
			return 0;
	refuse(refusal, STATUS_USAGE, "option --by '%s'", options->by);
	because(refusal, "it names no branches: edge, function, callpair, line or range");
	return instead(refusal, "for branches: --by edge,%s", options->by);
}

/* Between two branches lies straight code only if none between them is left out. */
static int check_ranges(const struct options *options, const struct event *event,
			struct refusal *refusal)
{
	if (!options_by(options, "range") ||
	    event->attr.branch_sample_type & PERF_SAMPLE_BRANCH_ANY)
		return 0;
	refuse(refusal, STATUS_USAGE, "option --by '%s' with --filter %s", options->by, options->filter);
	because(refusal, "between two branches there is straight code only if all branches are recorded");
	return instead(refusal, "ask for --filter any, or for edges");
}

int plan_branch(struct plan *plan, const struct options *options, struct host *host,
		struct refusal *refusal)
{
	const char *text = options->events;

	if (check_by(options, refusal))
		return -1;
	if (options->trace)
		return plan_trace(plan, options, host, refusal);
	if (options->stream) {
		refuse(refusal, STATUS_USAGE, "option --stream");
		because(refusal, "the branches that come with samples are aggregated in the kernel");
		return instead(refusal, "for each branch as a record: --trace --stream");
	}
	if (target_plan(&plan->target, options, host, refusal))
		return -1;
	if (options->period && options->frequency)
		return refuse_period_and_frequency(refusal);
	if (!text)
		text = default_branch_event(plan, host);
	if (events_parse(text, host, &plan->events, refusal))
		return -1;
	if (options->format == FORMAT_AUTOFDO && plan->events.nr > 1) {
		refuse(refusal, STATUS_USAGE, "option --format autofdo with several events");
		because(refusal, "one profile has one count of each branch");
		return instead(refusal, "leave out -e, or name one event");
	}
	plan_common(plan, host);
	if (plan_all_sampling(plan, options, host, refusal))
		return -1;
	for (size_t i = 0; i < plan->events.nr; i++) {
		struct event *event = &plan->events.list[i];

		if (branch_filter_set(event, options->filter ? options->filter : "any", refusal) ||
		    check_ranges(options, event, refusal))
			return -1;
		if (!options->filter)
			event_reason(event, "branch_sample_type", "the default: all, of the event's sides");
	}
	return check(plan, options, host, refusal);
}

/* explain takes events as arguments, with -e, or both, and metrics; without any it shows the default. */
static int parse_arguments(struct plan *plan, const struct options *options, bool sampling,
			   struct host *host, struct refusal *refusal)
{
	const char *text = options->events;

	if (!text && !options->nr_rest && !options->metrics)
		text = sampling ? default_profile_event(plan, host) : default_stat_events(plan, host);
	if (text && events_parse(text, host, &plan->events, refusal))
		return -1;
	for (int i = 0; i < options->nr_rest; i++)
		if (events_parse(options->rest[i], host, &plan->events, refusal))
			return -1;
	return plan_counts(plan, NULL, options->metrics, host, refusal);
}

int plan_explain(struct plan *plan, const struct options *options, struct host *host,
		 struct refusal *refusal)
{
	static char *command[] = {"true", NULL};
	bool sampling = options->period || options->frequency || options->filter || options->call_graph;

	plan->target.command = command;
	if (options->period && options->frequency)
		return refuse_period_and_frequency(refusal);
	if (parse_arguments(plan, options, sampling, host, refusal))
		return -1;
	/* A list behind -e is what stat would count; arguments are asked about each by itself. */
	if (options->events && !options->nr_rest && !sampling) {
		grouping_form(&plan->events, host);
		grouping_place(&plan->events, host);
	}
	plan_common(plan, host);
	for (size_t i = 0; i < plan->events.nr; i++) {
		struct event *event = &plan->events.list[i];

		/* There is no precise event without samples. */
		if ((sampling || event->attr.precise_ip) &&
		    plan_sampling(event, options, host, refusal))
			return -1;
		if (options->call_graph && plan_stacks(event, options, host, refusal))
			return -1;
		if (options->filter && branch_filter_set(event, options->filter, refusal))
			return -1;
	}
	return rules_check(&plan->events, &plan->target, host, options->force, refusal);
}

void plan_release(struct plan *plan)
{
	events_release(&plan->events);
	metrics_release(&plan->metrics);
	free(plan->expectations.list);
	plan->expectations = (struct expectations){0};
	target_release(&plan->target);
}
