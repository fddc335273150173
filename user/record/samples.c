// SPDX-License-Identifier: GPL-2.0-only
#include "record/samples.h"

#include <string.h>

/* The number of samples that the kernel's count should have given. If the period varied (a frequency), it is
 * divided by the mean period of the samples that came. If these stand for all that was counted up to the last
 * of each counter, nothing tells a sample that was missed from a period that has not ended. */
static __u64 samples_of(const struct samples_read *read)
{
	if (read->by_count)
		return read->runs;
	if (read->sample_period)
		return read->samples_before + (read->count - read->count_before) / read->sample_period;
	if (!read->runs)
		return 0;
	return (__u64)((double)read->count * read->runs / (read->period - read->runs * read->beyond));
}

struct samples samples_account(const struct samples_read *read, const struct samples *before)
{
	__u64 counted = samples_of(read);
	__u64 lack = counted > read->runs + read->contexts ? counted - read->runs - read->contexts : 0;
	struct samples samples = {
		.uncertainty = read->contexts,
		.at_least = read->at_least,
		.throttled = read->throttled,
		.by_group = read->by_group,
		.stops = read->stops,
		.aggregated = read->aggregated,
		.table_full = read->table_full,
		.stack_failed = read->stack_failed,
		.missed = lack > before->missed ? lack : before->missed,
		.filtered = read->filtered,
		/* The count was read first, so the samples may stand for more. */
		.unsampled = read->by_count && read->count > read->period ? read->count - read->period : 0,
	};

	samples.expected = samples.aggregated + samples.table_full + samples.stack_failed + samples.missed;
	return samples;
}

__u64 samples_uncounted(const struct samples_read *read, const struct samples *account)
{
	bool recorded = !strcmp(missed_cause(read), "pebs_drained");

	return read->beyond * (read->runs + (recorded ? account->missed : 0));
}

bool samples_paused(const struct samples *account)
{
	return account->stops && account->throttled;
}

struct samples samples_since(const struct samples *now, const struct samples *before)
{
	return (struct samples){
		.expected = now->expected - before->expected,
		.uncertainty = now->uncertainty,
		.at_least = now->at_least,
		.throttled = now->throttled - before->throttled,
		.by_group = now->by_group - before->by_group,
		.stops = now->stops,
		.aggregated = now->aggregated - before->aggregated,
		.table_full = now->table_full - before->table_full,
		.stack_failed = now->stack_failed - before->stack_failed,
		.missed = now->missed - before->missed,
		.filtered = now->filtered - before->filtered,
		.unsampled = now->unsampled,
		.unsampled_before = before->unsampled,
	};
}

const char *missed_cause(const struct samples_read *read)
{
	if (read->clock)
		return read->one_side ? "excluded" : "timer_missed";
	if (read->precise && read->collides)
		return "pebs_collision";
	if (read->precise && !read->runs && samples_of(read) > read->contexts)
		return "pebs_unrecorded";
	if (read->precise)
		return "pebs_drained";
	return "handler_skipped";
}

json_t *samples_value(const struct samples *samples, const char *cause)
{
	json_t *value = json_pack("{s:I, s:I, s:I, s:{s:I, s:I}}", "expected", (json_int_t)samples->expected,
				  "uncertainty", (json_int_t)samples->uncertainty, "aggregated",
				  (json_int_t)samples->aggregated, "lost", "table_full",
				  (json_int_t)samples->table_full, cause, (json_int_t)samples->missed);

	if (samples->at_least || samples_paused(samples))
		json_object_set_new(value, "at_least", json_true());
	if (samples->filtered)
		json_object_set_new(value, "filtered", json_integer(samples->filtered));
	if (samples->throttled)
		json_object_set_new(value, "throttled", json_integer(samples->throttled));
	if (samples->unsampled)
		json_object_set_new(value, "unsampled", json_integer(samples->unsampled));
	if (samples->unsampled_before)
		json_object_set_new(value, "unsampled_before", json_integer(samples->unsampled_before));
	return value;
}
