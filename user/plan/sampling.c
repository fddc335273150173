// SPDX-License-Identifier: GPL-2.0-only
/* What the plans of all activities that sample have in common. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "event/encoding.h"
#include "host/kernel.h"
#include "plan/plan.h"
#include "plan/unwind.h"
#include "shared.h"

#define DEFAULT_FREQUENCY 4000 /* Hz; the default of perf record */

static int refuse_frequency(const struct event *event, const struct host *host, __u64 frequency,
			    struct refusal *refusal)
{
	refuse(refusal, STATUS_REFUSED, "event '%s' at %llu Hz", event->name, frequency);
	refusal->error = EINVAL;
	because(refusal, "kernel.perf_event_max_sample_rate is %ld", host->max_sample_rate);
	return instead(refusal, "ask for -F %ld, or: sysctl kernel.perf_event_max_sample_rate=%llu",
		       host->max_sample_rate, frequency);
}

/* x86_perf_event_set_period(), arch/x86/events/core.c, raises shorter periods to this. */
#define X86_PERIOD_LEAST 2

static bool is_of_core(const struct event *event)
{
	__u32 type = event->attr.type;

	return type == PERF_TYPE_RAW || type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE;
}

/* Whether several may occur at once: cycles in a stall, micro-operations of an instruction. The record of a
 * precise event then takes those, too, that come with or after the one that it is of, up to the time when the
 * hardware has set the counter again. */
static bool occurs_several_at_once(const struct perf_event_attr *attr, const struct known_kernel *kernel)
{
	const __u64 of_cycles = CONFIG_EDGE | CONFIG_INV | CONFIG_CMASK;
	const struct kernel_rule *rule;

	if (attr->type != PERF_TYPE_RAW)
		return attr->type == PERF_TYPE_HARDWARE && attr->config == PERF_COUNT_HW_CPU_CYCLES;
	rule = kernel_rule_of(kernel->precise, kernel->nr_precise, attr->config);
	return attr->config & of_cycles || (attr->config & CONFIG_SELECT) == 0x3c || (rule && rule->several);
}

/* A clock's samples are as far apart as its ticks, which have a least distance. */
static void plan_ticks(struct event *event)
{
	char why[64];

	event->least = CLOCK_PERIOD_LEAST;
	if (event->attr.freq || event->attr.sample_period >= event->least)
		return;
	snprintf(why, sizeof(why), "%s", event_reason_of(event, "sample_period"));
	event_reason(event, "sample_period", "%s; the kernel's clocks tick every %llu ns or less often", why,
		     event->least);
}

/* A sample stands for its period, but for the first one of a counter, which may come later. */
static void plan_miscounted(struct event *event)
{
	event->miscounted = true;
	event_note(event, "Linux counts it wrongly on NetBurst from 6.1 on, so its value is what its samples "
			  "stand for; the first of each counter may come late, or not at all");
}

/* Has samples as far apart as asked: a precise one takes more events than its period (event_distance()). If
 * the driver does not take a period that is so much shorter, the samples are farther apart. */
static void plan_distance(struct event *event, const struct host *host)
{
	const struct known_kernel *kernel = host->events ? host->events->kernel : NULL;
	__u64 asked = event->attr.sample_period;
	char why[64];

	if (event_is_clock(event))
		plan_ticks(event);
	if (is_of_core(event) && kernel_miscounts(host))
		plan_miscounted(event);
	if (!kernel || !is_of_core(event))
		return;
	event->least = kernel->lowest_period < X86_PERIOD_LEAST ? X86_PERIOD_LEAST : kernel->lowest_period;
	if (!event->attr.precise_ip)
		return;
	event->beyond = kernel->beyond_period;
	event->at_least = event->beyond && occurs_several_at_once(&event->attr, kernel);
	if (event->attr.freq || !event->beyond)
		return;
	snprintf(why, sizeof(why), "%s", event_reason_of(event, "sample_period"));
	if (asked >= event->least + event->beyond)
		EVENT_SET(event, sample_period, asked - event->beyond,
			  "%s: PEBS records the event after these", why);
	else
		event_reason(event, "sample_period", "%s: the least; PEBS records the event after these",
			     why);
}

static int plan_pace(struct event *event, const struct options *options, const struct host *host,
		     struct refusal *refusal)
{
	__u64 usual = options->usual_frequency ? options->usual_frequency : DEFAULT_FREQUENCY;
	__u64 frequency = options->frequency;

	if (options->period && !event->sampling_given) {
		EVENT_SET(event, freq, 0, "--count");
		EVENT_SET(event, sample_period, options->period, "--count");
	} else if (!event->sampling_given) {
		/* The default must work everywhere, so it is limited by the machine's maximum. */
		if (!frequency)
			frequency =
				(__u64)host->max_sample_rate < usual ? (__u64)host->max_sample_rate : usual;
		EVENT_SET(event, freq, 1, options->frequency ? "--freq" : "the default");
		EVENT_SET(event, sample_freq, frequency, options->frequency ? "--freq" : "the default");
	}
	if (event->attr.freq && event->attr.sample_freq > (__u64)host->max_sample_rate)
		return refuse_frequency(event, host, event->attr.sample_freq, refusal);

	plan_distance(event, host);
	EVENT_SET(event, sample_type, PERF_SAMPLE_IP, "the program reads the registers; no ring is used");
	/* Otherwise the program would not see most PEBS records: intel_pmu_hw_config(),
	 * arch/x86/events/intel/core.c, batches them unless each asks for a wakeup. */
	EVENT_SET(event, wakeup_events, 1, "every PEBS record comes by the program");
	EVENT_SET(event, watermark, 0, "wakeup_events counts events");
	return 0;
}

/* In a chain a word precedes the frames of each side, and the helper that reads the chain counts it as a
 * frame: __bpf_get_stack(), kernel/bpf/stackmap.c. */
#define CHAIN_CONTEXTS 2

static int refuse_depth(const struct host *host, __u64 depth, struct refusal *refusal)
{
	refuse(refusal, STATUS_REFUSED, "option --max-stack '%llu'", depth);
	because(refusal,
		"the kernel walks stacks by frame pointers, and those of precise samples; its "
		"kernel.perf_event_max_stack is %ld, and a program gets %d frames less",
		host->max_stack, CHAIN_CONTEXTS);
	return instead(refusal, "ask for %ld, or: sysctl kernel.perf_event_max_stack=%llu",
		       host->max_stack - CHAIN_CONTEXTS, depth + CHAIN_CONTEXTS);
}

/* A stack has the sides that the event measures. A program can read the stack of a precise sample only if the
 * kernel has taken the whole chain: perf_event_set_bpf_handler(), kernel/events/core.c. */
static int plan_stacks(struct event *event, const struct options *options, const struct host *host,
		       struct refusal *refusal)
{
	long most = host->max_stack - CHAIN_CONTEXTS, limit = STACK_FRAMES;
	__u64 depth = options->max_stack;
	bool tables, precise = event->attr.precise_ip;
	const char *why;

	/* With tables, the program itself walks the user's side and asks for the kernel's, if it is needed.
	 * Then a chain that the kernel takes for each sample would not be used. */
	if (plan_unwind(options, host, &tables, &why, refusal))
		return -1;
	if (!tables || precise)
		limit = most;
	if (!depth)
		depth = limit < STACK_DEFAULT ? limit : STACK_DEFAULT;
	if (most < 1 || depth > (__u64)limit)
		return refuse_depth(host, depth, refusal);
	if (precise || !tables)
		EVENT_SET(event, sample_type, event->attr.sample_type | PERF_SAMPLE_CALLCHAIN,
			  "the program reads the registers and the calls; no ring is used");
	EVENT_SET(event, sample_max_stack, depth, options->max_stack ? "--max-stack" : "the default");
	if (!precise && tables)
		return 0;
	if (event->attr.exclude_kernel && !precise)
		EVENT_SET(event, exclude_callchain_kernel, 1, "as exclude_kernel");
	if (event->attr.exclude_user && !precise)
		EVENT_SET(event, exclude_callchain_user, 1, "as exclude_user");
	return 0;
}

static int refuse_leader_samples(const struct event *event, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "event '%s', modifier S", event->name);
	because(refusal, "in perf, a group with S takes samples of its first event and reads the others "
			 "then; here each event of a group takes samples of its own");
	return instead(refusal, "leave out S, or count the other events with nhmtap stat");
}

static int plan_samples_of(struct event *event, const struct options *options, const struct host *host,
			   struct refusal *refusal)
{
	if (event->leader_samples)
		return refuse_leader_samples(event, refusal);
	if (plan_pace(event, options, host, refusal))
		return -1;
	return options->call_graph ? plan_stacks(event, options, host, refusal) : 0;
}

int plan_samples(struct plan *plan, bool all, const struct options *options, const struct host *host,
		 struct refusal *refusal)
{
	for (size_t i = 0; i < plan->events.nr; i++) {
		struct event *event = &plan->events.list[i];

		if (!event->companion && (all || event->attr.precise_ip) &&
		    plan_samples_of(event, options, host, refusal))
			return -1;
	}
	return 0;
}

/* Precise cycles, if the machine has them; otherwise what works, at worst a clock, which every machine
 * has. */
const char *plan_default_sampled(struct plan *plan, struct host *host)
{
	const struct pmu *pmu = host_core_pmu(host);
	int level;

	if (!pmu) {
		snprintf(plan->default_why, sizeof(plan->default_why),
			 "this machine has no core PMU, so samples are taken by a clock");
		return "cpu-clock";
	}
	if (kernel_miscounts(host)) {
		snprintf(plan->default_why, sizeof(plan->default_why),
			 "this kernel counts the core's events wrongly, so samples are taken by a clock");
		return "cpu-clock";
	}
	level = host->cycles_tried ? host->cycles_precise : pmu->max_precise;
	if (level > 0) {
		snprintf(plan->default_why, sizeof(plan->default_why),
			 "the PMU '%s' samples precisely up to level %d", pmu->name, level);
		return level == pmu->max_precise ? "cycles:P" : level == 1 ? "cycles:p" : "cycles:pp";
	}
	if (host->cycles_tried && level < 0) {
		snprintf(plan->default_why, sizeof(plan->default_why),
			 "the PMU '%s' does not count cycles, so samples are taken by a clock", pmu->name);
		return "cpu-clock";
	}
	snprintf(plan->default_why, sizeof(plan->default_why), "the PMU '%s' counts cycles, but %s",
		 pmu->name,
		 pmu->max_precise > 0 ? "its driver does not sample them precisely"
				      : "has no precise sampling");
	return "cycles";
}

int plan_one_pace(const struct options *options, struct refusal *refusal)
{
	if (!options->period || !options->frequency)
		return 0;
	refuse(refusal, STATUS_USAGE, "options --count and --freq");
	because(refusal, "a sample is taken either every N events or N times a second");
	return instead(refusal, "give one of them");
}

/* A companion event takes no samples: there must be another event that does. */
static int check_companions(const struct events *events, struct refusal *refusal)
{
	for (size_t i = 0; i < events->nr; i++)
		if (!events->list[i].companion)
			return 0;
	refuse(refusal, STATUS_USAGE, "event '%s'", events->list[0].name);
	because(refusal, "it only counts beside another event, and takes no samples itself");
	return instead(
		refusal,
		"sample that one in a group with it, as in {cpu/mem-loads-aux/,cpu/mem-loads,ldlat=30/pp}");
}

int plan_sampling(struct plan *plan, const char *events, const struct options *options, struct host *host,
		  struct refusal *refusal)
{
	if (target_plan(&plan->target, options, host, refusal) || plan_one_pace(options, refusal) ||
	    plan_events(plan, events, NULL, host, refusal) || check_companions(&plan->events, refusal))
		return -1;
	plan_common(plan, host);
	return plan_samples(plan, true, options, host, refusal);
}
