// SPDX-License-Identifier: GPL-2.0-only
#include "activity/pacing.h"

#include <stdbool.h>
#include <stdlib.h>

#include "activity/activity.h"
#include "base/clock.h"
#include "base/memory.h"
#include "collection/sample_cost.h"

/* The longest periods that are set: a second for clocks, and what a Nehalem's counter takes at
 * once: 31 bits. */
#define CLOCK_PERIOD_MOST 1000000000ULL
#define PERIOD_MOST	  0x7fffffffULL

struct paced_event {
	struct aggregation *aggregation; /* NULL: it takes no samples */
	bool clock, frequency;		 /* it is a clock; the kernel adapts its period (never a clock's) */
	__u64 opened, asked, held;	 /* what a sample stands for (frequencies, if `frequency`): as opened,
					    asked, current */
	__u64 beyond;			 /* of that, what the kernel's period is less: event_distance() */
	__u64 count, samples;		 /* see struct paced */
	__u64 reported;			 /* number of changes that records have reported */
	__u64 fixed_ns, program_ns;	 /* cost of a sample */
	struct table_runs seen;		 /* at the last call of cost() */
	__u64 filtered_at;		 /* time of that call, CLOCK_MONOTONIC */
};

struct pacing {
	struct activity *activity;
	struct sampled_part part;
	struct paced_event *events;
	size_t nr;
	double factor;
	__u64 changes;
};

/* Whether the kernel discards some of a clock's ticks without making a sample. They cost as much. */
static bool is_filtered(const struct paced_event *event, const struct perf_event_attr *attr)
{
	return event->clock && (attr->exclude_user || attr->exclude_kernel);
}

/* --- cost ------------------------------------------------------------------------------------- */

static __u64 ticks_of_all(const struct activity *activity, const struct paced_event *event, __u64 ns)
{
	const struct places *places = counters_places(activity->counters);
	size_t running = 0, most = cpus_count(&activity->session->host.online);

	for (size_t p = 0; p < places->nr; p++)
		running += places->list[p].open;
	return ns / event->held * (running < most ? running : most);
}

static __u64 cost_of(const struct activity *activity, struct paced_event *event,
		     const struct perf_event_attr *attr)
{
	struct table_runs now = aggregation_runs(event->aggregation), *seen = &event->seen;
	__u64 samples = now.runs - seen->runs, fired = samples, at = clock_ns(CLOCK_MONOTONIC);

	if (now.timed_runs > seen->timed_runs)
		event->program_ns = (now.timed_ns - seen->timed_ns) / (now.timed_runs - seen->timed_runs);
	if (is_filtered(event, attr) && event->filtered_at && !activity->off) {
		__u64 ticks = ticks_of_all(activity, event, at - event->filtered_at);

		fired = ticks > samples ? ticks : samples;
	}
	event->filtered_at = at;
	*seen = now;
	return fired * event->fixed_ns + samples * event->program_ns;
}

static __u64 cost(void *context)
{
	struct pacing *pacing = context;
	__u64 sum = 0;

	for (size_t i = 0; i < pacing->nr; i++)
		if (pacing->events[i].aggregation)
			sum += cost_of(pacing->activity, &pacing->events[i],
				       &pacing->activity->plan.events.list[i].attr);
	return sum;
}

/* --- periods ---------------------------------------------------------------------------------- */

/* The period, or frequency, that the kernel is given. */
static __u64 period_held(const struct paced_event *event)
{
	return event->held - event->beyond;
}

/* The period, or frequency, for a factor. Never more samples than were asked for. */
static __u64 held_at(const struct paced_event *event, double factor)
{
	__u64 most = event->clock ? CLOCK_PERIOD_MOST : PERIOD_MOST;
	double value;

	if (event->frequency) {
		value = event->asked / factor;
		return value < 1 ? 1 : value;
	}
	value = event->asked * factor;
	if (value <= event->asked || event->asked >= most)
		return event->asked;
	return value < most ? value : most;
}

/* Tells the program on all CPUs the period of a clock, because a clock's samples do not report it. */
static void weigh_clock(const struct paced_event *event)
{
	if (event->clock)
		aggregation_weigh(event->aggregation, event->opened, event->held);
}

void pacing_join(struct pacing *pacing, size_t place)
{
	for (size_t i = 0; i < pacing->nr; i++) {
		const struct paced_event *event = &pacing->events[i];

		if (!event->aggregation)
			continue;
		counters_set_period(pacing->activity->counters, i, place, period_held(event));
		weigh_clock(event);
	}
}

/* Carries over what a CPU has counted towards the next sample. It has an event for each cgroup
 * of the target. */
static void carry_counted(const struct pacing *pacing, size_t i, int cpu)
{
	const struct paced_event *event = &pacing->events[i];
	const struct places *places = counters_places(pacing->activity->counters);
	__u64 counted = 0, most = 0;

	for (size_t p = 0; p < places->nr; p++) {
		struct count count;

		if (places->list[p].cpu != cpu)
			continue;
		counters_last(pacing->activity->counters, i, p, &count);
		counted += count.value;
		most += period_held(event);
	}
	aggregation_carry(event->aggregation, cpu, counted, most);
}

/* Accounts for the current period, which ends: counts the samples to be expected by it. */
static void close_period(struct pacing *pacing, size_t i)
{
	const struct activity *activity = pacing->activity;
	struct paced_event *event = &pacing->events[i];
	struct count count;

	if (event->frequency || counters_read(activity->counters, i, &count))
		return;
	event->samples += (count.value - event->count) / period_held(event);
	event->count = count.value;
	/* Not all that a filtered clock has counted is for samples. */
	if (!activity->plan.target.cpus_given || is_filtered(event, &activity->plan.events.list[i].attr))
		return;
	for (int cpu = 0; cpu < cpus_end(&activity->session->host.possible); cpu++)
		carry_counted(pacing, i, cpu);
}

static void hold_event(struct pacing *pacing, size_t i)
{
	const struct places *places = counters_places(pacing->activity->counters);
	struct paced_event *event = &pacing->events[i];

	close_period(pacing, i);
	event->held = held_at(event, pacing->factor);
	for (size_t p = 0; p < places->nr; p++)
		counters_set_period(pacing->activity->counters, i, p, period_held(event));
	weigh_clock(event);
}

/*
 * Changes the periods of all events. Meanwhile counting is disabled, so that no sample is weighted with the
 * old period: the period of the kernel's software events takes effect when they are enabled
 * (perf_swevent_add()).
 */
static void hold_periods(void *context, double factor)
{
	struct pacing *pacing = context;
	struct activity *activity = pacing->activity;

	pacing->factor = factor;
	pacing->changes++;
	if (!activity->off)
		counters_disable(activity->counters);
	for (size_t i = 0; i < pacing->nr; i++)
		if (pacing->events[i].aggregation)
			hold_event(pacing, i);
	if (!activity->off)
		counters_enable(activity->counters);
}

static void plan_event(struct paced_event *event, const struct event *planned)
{
	const struct perf_event_attr *attr = &planned->attr;

	event->clock = event_is_clock(planned);
	event->frequency = attr->freq && !event->clock;
	event->beyond = event->frequency ? 0 : planned->beyond;
	event->opened = event->clock	   ? event_clock_period(planned)
			: event->frequency ? attr->sample_freq
					   : event_distance(planned);
	event->asked = event->opened;
	/* Samples of inherited copies report their own period. Make it differ from the period that the event
	 * was opened with, which samples of the event itself keep reporting. */
	if (event->clock && attr->inherit && event->asked == event->opened)
		event->asked++;
	event->held = event->asked;
	event->fixed_ns = sample_cost(planned);
}

struct pacing *pacing_new(struct activity *activity, struct aggregation **aggregations)
{
	struct pacing *pacing;

	if (!activity->session->cpu_share)
		return NULL;
	pacing = xcalloc(1, sizeof(*pacing));
	pacing->activity = activity;
	pacing->part = (struct sampled_part){pacing, cost, hold_periods};
	pacing->factor = 1;
	pacing->nr = activity->plan.events.nr;
	pacing->events = xcalloc(pacing->nr, sizeof(*pacing->events));
	for (size_t i = 0; i < pacing->nr; i++) {
		struct paced_event *event = &pacing->events[i];

		if (!aggregations[i])
			continue;
		event->aggregation = aggregations[i];
		plan_event(event, &activity->plan.events.list[i]);
		aggregation_pace(event->aggregation);
	}
	return pacing;
}

void pacing_release(struct pacing *pacing)
{
	if (!pacing)
		return;
	free(pacing->events);
	free(pacing);
}

const struct sampled_part *pacing_part(const struct pacing *pacing)
{
	return pacing ? &pacing->part : NULL;
}

/* --- what is said of it ------------------------------------------------------------------------ */

struct paced pacing_of(const struct pacing *pacing, size_t i)
{
	const struct paced_event *event = &pacing->events[i];

	return (struct paced){event->frequency ? 0 : period_held(event), event->count, event->samples,
			      pacing->changes};
}

void pacing_put(struct pacing *pacing, size_t i, json_t *record)
{
	static const char *const because[] = {
		[SHARE_ASKED] = "asked", [SHARE_TOO_DEAR] = "too_dear", [SHARE_ROOM] = "room"};
	const struct activity *activity = pacing->activity;
	const struct share_control *control = cpu_share_control(activity->session->cpu_share);
	struct paced_event *event = &pacing->events[i];
	json_t *share = json_pack(
		"{s:f, s:f, s:I, s:I, s:I, s:s}", "allowed", control->allowed, "used",
		activity_share(activity), "sample_cost_ns", (json_int_t)(event->fixed_ns + event->program_ns),
		event->frequency ? "sample_freq" : "sample_period", (json_int_t)event->held, "changes",
		(json_int_t)(pacing->changes - event->reported), "because", because[control->because]);

	event->reported = pacing->changes;
	json_object_set_new(record, "share", share);
}
