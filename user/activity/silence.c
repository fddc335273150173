// SPDX-License-Identifier: GPL-2.0-only
#include "activity/silence.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "event/event.h"
#include "plan/rules.h"
#include "record/samples.h"

/* --- lost ------------------------------------------------------------------------------------- */

static bool in_full_table(const struct silence *silence)
{
	return silence->samples->table_full;
}

static bool without_stack(const struct silence *silence)
{
	return silence->samples->stack_failed;
}

static bool missed(const struct silence *silence, const char *cause)
{
	return silence->samples->missed && !strcmp(silence->cause, cause);
}

static bool skipped(const struct silence *silence)
{
	return missed(silence, "handler_skipped");
}

static bool of_late_ticks(const struct silence *silence)
{
	return missed(silence, "timer_missed");
}

static bool unrecorded(const struct silence *silence)
{
	return missed(silence, "pebs_unrecorded");
}

static bool without_record(const struct silence *silence)
{
	return missed(silence, "pebs_drained") || missed(silence, "pebs_collision");
}

static bool throttled(const struct silence *silence)
{
	return silence->samples->throttled;
}

/*
 * When the kernel switches a thread in, it leaves no less of a period than this (x86_perf_event_set_period(),
 * arch/x86/events/core.c). A thread in which fewer events occur from one switch to the next never has a
 * sample. A CPU's counters go on through switches.
 */
static __u64 least_left(const struct silence *silence)
{
	return silence->event->least ?: 2;
}

static bool has_switches(const struct silence *silence)
{
	const struct target *target = &silence->activity->plan.target;

	return event_stops_throttled(silence->event) && (!target->cpus_given || target->nr_cgroups);
}

/* --- never due -------------------------------------------------------------------------------- */

/* The occurrences, or ns of a clock, from one sample to the next; 0: the kernel chooses them. */
static __u64 distance(const struct silence *silence)
{
	return event_is_clock(silence->event) ? event_clock_period(silence->event)
					      : event_distance(silence->event);
}

static bool on_excluded_side(const struct silence *silence)
{
	const struct perf_event_attr *attr = &silence->event->attr;

	return event_is_clock(silence->event) && (attr->exclude_user || attr->exclude_kernel) &&
	       (silence->samples->missed || silence->count->value >= distance(silence));
}

static bool is_by_samples(const struct silence *silence)
{
	return silence->activity->plan.target.by_samples;
}

/* What the event counted is what samples in the cgroups stand for; ticks are missed anywhere. */
static bool only_elsewhere(const struct silence *silence)
{
	return is_by_samples(silence) && !silence->count->value;
}

static bool all_filtered(const struct silence *silence)
{
	return silence->samples->filtered;
}

static bool is_miscounted(const struct silence *silence)
{
	return silence->event->miscounted;
}

static bool none(const struct silence *silence)
{
	return !silence->count->value;
}

/* Sets the least latency of the loads that the event counts. */
static bool has_threshold(const struct silence *silence, __u64 *cycles)
{
	return rules_register(silence->event, "load-latency threshold", &silence->activity->session->host,
			      cycles) > 0;
}

static bool none_so_long(const struct silence *silence)
{
	__u64 cycles;

	return none(silence) && has_threshold(silence, &cycles);
}

static bool clock_too_short(const struct silence *silence)
{
	return event_is_clock(silence->event) && silence->count->value < distance(silence);
}

static bool clock_spread(const struct silence *silence)
{
	return event_is_clock(silence->event);
}

static bool too_few(const struct silence *silence)
{
	return silence->count->value < distance(silence);
}

static bool is_spread(const struct silence *silence)
{
	return distance(silence);
}

static bool is_any(const struct silence *silence)
{
	return true;
}

/* The first reason that holds. A text may have a number of the occurrences, or of the threshold, and then the
 * distance of samples. */
static const struct silent_reason {
	bool (*holds)(const struct silence *silence);
	const char *text;
} reasons[] = {
	{in_full_table, "all were lost: a table was full"},
	{without_stack, "all were lost: the kernel returned no stack"},
	{all_filtered, "none of its samples met the condition (--where)"},
	{on_excluded_side, "each tick fell on the side that is excluded"},
	{only_elsewhere, "no sample fell in the cgroups that are measured, if there are any"},
	{skipped, "all were lost: at each of them the CPU was in another BPF program, in bpf(), or in the "
		  "event's own interrupt, where the kernel skips programs"},
	{of_late_ticks, "all were lost: its ticks came late or not at all, or were throttled"},
	{unrecorded, "all were lost: the CPU wrote no record of it, which it does not do for every event"},
	{without_record, "all were lost: the kernel passed on none of the CPU's records (PEBS)"},
	{throttled, "the kernel paused it until its next tick, because it sampled too often"},
	{is_miscounted,
	 "how often it occurred is not known: the kernel counts it wrongly on NetBurst, and has the "
	 "first sample of a counter come late"},
	{is_by_samples, "no sample fell in the cgroups that are measured"},
	{none_so_long, "it ran, and no load took %llu cycles or longer"},
	{none, "it ran, and did not occur"},
	{clock_too_short, "it ran for %llu ns, and a sample comes every %llu ns"},
	{clock_spread, "it ran for %llu ns, but on no CPU or thread the %llu ns that a sample takes"},
	{too_few, "it occurred %llu times, and a sample comes every %llu times"},
	{is_spread, "it occurred %llu times, but on no CPU or thread the %llu times that a sample takes"},
	{is_any, "it occurred %llu times, fewer than the kernel chose for a sample at this frequency"},
};

/* Whether nothing tells this reason from switches: see least_left(). */
static bool may_be_switches(const struct silent_reason *reason)
{
	return reason->holds == skipped || reason->holds == unrecorded || reason->holds == without_record ||
	       reason->holds == is_any;
}

bool silence_is(const struct silence *silence)
{
	return silence->count->running_ns && !silence->samples->aggregated;
}

static void print_why(char *text, size_t size, const char *format, ...)
{
	va_list numbers;

	va_start(numbers, format);
	vsnprintf(text, size, format, numbers);
	va_end(numbers);
}

const char *silence_why(const struct silence *silence, char text[SILENCE_SIZE])
{
	unsigned long long number = silence->count->value;
	__u64 cycles;
	size_t i = 0, used;

	while (!reasons[i].holds(silence))
		i++;
	if (none(silence) && has_threshold(silence, &cycles))
		number = cycles;
	print_why(text, SILENCE_SIZE, reasons[i].text, number, (unsigned long long)distance(silence));
	if (may_be_switches(&reasons[i]) && has_switches(silence)) {
		used = strlen(text);
		snprintf(text + used, SILENCE_SIZE - used,
			 "; or it occurred less than %llu times from one switch of its thread to the next: "
			 "the kernel leaves no less of a period at a switch, of which there is none with -a",
			 (unsigned long long)least_left(silence));
	}
	return text;
}
