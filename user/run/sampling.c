// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "collection/aggregation.h"
#include "record/entry.h"
#include "record/fold.h"
#include "record/record.h"
#include "record/samples.h"
#include "run/addresses.h"
#include "run/run.h"
#include "run/sampling.h"

#define DEFAULT_TABLE_ENTRIES 20

/* How often samples that stream are taken out of the rings. */
#define DRAIN_NS 50000000

struct state {
	const struct sampling *sampling;
	size_t nr;                          /* events */
	struct aggregation **aggregations;  /* one an event: with inherit the program alone tells them apart */
	struct count *before;               /* an event's */
	struct samples *accounts;           /* an event's, so far */
	const char **causes;                /* an event's missed_cause() */
	__u64 *streamed, *ring_lost;        /* an event's samples in the stream, and those that missed it */
	__u64 *throttled;                   /* an event's, times so far */
	__u64 real_ns;                      /* CLOCK_REALTIME less CLOCK_MONOTONIC, when the run began */
	__u64 forks;                        /* of the machine, when the run began */
};

static const char *keys_of(const struct run *run)
{
	const struct sampling *sampling = run->activity->details;

	if (run->options->by)
		return run->options->by;
	return run->options->stream ? sampling->stream_keys : sampling->default_keys;
}

static int refuse_names_in_stream(const struct chosen_keys *keys, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "option --by '%s' with --stream", keys->by);
	because(refusal, "a stream's samples are written as they come, and names would hold them up");
	return instead(refusal, "stream ip,pid; or leave --stream out");
}

static int sampling_check(struct run *run, struct refusal *refusal)
{
	struct state *state = calloc(1, sizeof(*state));

	run->state = state;
	state->sampling = run->activity->details;
	run->drain_ns = run->activity->drain ? DRAIN_NS : 0;
	state->nr = run->plan.events.nr;
	state->aggregations = calloc(state->nr, sizeof(*state->aggregations));
	state->before = calloc(state->nr, sizeof(*state->before));
	state->accounts = calloc(state->nr, sizeof(*state->accounts));
	state->streamed = calloc(state->nr, sizeof(*state->streamed));
	state->ring_lost = calloc(state->nr, sizeof(*state->ring_lost));
	state->throttled = calloc(state->nr, sizeof(*state->throttled));
	state->causes = calloc(state->nr, sizeof(*state->causes));
	keys_choose(&run->keys, keys_of(run), state->sampling->code_keys);
	if (run->keys.detail && run->options->stream)
		return refuse_names_in_stream(&run->keys, refusal);
	for (size_t i = 0; i < state->nr; i++) {
		const struct perf_event_attr *attr = &run->plan.events.list[i].attr;

		if (keys_open(&state->aggregations[i], state->sampling->aggregation, &run->keys,
			      refusal))
			return -1;
		if (run->options->stream)
			aggregation_stream(state->aggregations[i]);
		if (attr->sample_type & PERF_SAMPLE_CALLCHAIN)
			aggregation_stacks(state->aggregations[i], !attr->exclude_kernel,
					   !attr->exclude_user, attr->sample_max_stack);
	}
	return 0;
}

/* Processes and threads made since boot: /proc/stat, "processes" (total_forks, kernel/fork.c). */
static __u64 forks_so_far(void)
{
	FILE *file = fopen("/proc/stat", "re");
	unsigned long long forks = 0;
	char *line = NULL;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0)
		if (sscanf(line, "processes %llu", &forks) == 1)
			break;
	free(line);
	if (file)
		fclose(file);
	return forks;
}

static int sampling_attach_at(struct run *run, size_t place, struct refusal *refusal)
{
	struct state *state = run->state;

	for (size_t i = 0; i < state->nr; i++)
		if (aggregation_attach(state->aggregations[i], counters_fd(run->counters, i, place),
				       &run->host, refusal))
			return -1;
	return 0;
}

/* Addresses that are not asked for by name have names in a table all the same. */
static unsigned int shown_detail(const struct run *run)
{
	const struct sampling *sampling = run->activity->details;

	return (run->stream.format == FORMAT_TABLE ? CODE_SYMBOL : 0) |
	       (run->keys.detail ? 0 : sampling->names);
}

static int sampling_attach(struct run *run, struct refusal *refusal)
{
	const struct places *places = counters_places(run->counters);
	struct state *state = run->state;

	if ((state->sampling->places || run->keys.detail) &&
	    addresses_open(&run->addresses, run, run->keys.detail | shown_detail(run), refusal))
		return -1;
	state->forks = forks_so_far();
	state->real_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < state->nr; i++)
		if (aggregation_load(state->aggregations[i], &run->host, refusal))
			return -1;
	for (size_t p = 0; p < places->nr; p++)
		if (places->list[p].open && sampling_attach_at(run, p, refusal))
			return -1;
	return 0;
}

static void sampling_describe(struct run *run, json_t *start)
{
	const struct state *state = run->state;

	json_object_set_new(start, "by",
			    keys_value(&run->keys, aggregation_layout(state->aggregations[0])));
}

/* --- entries ---------------------------------------------------------------------------------- */

size_t sampling_most_entries(const struct run *run, size_t nr)
{
	size_t top = run->options->top;

	if (!top && run->stream.format == FORMAT_TABLE)
		top = DEFAULT_TABLE_ENTRIES;
	return top && top < nr ? top : nr;
}

/* `folded`: what the entries have become; NULL: they are as they were read. */
static void put_list(const struct run *run, json_t *record, const struct layout *layout,
		     struct entry *list, size_t nr, const struct folded *folded)
{
	size_t top = sampling_most_entries(run, nr);
	json_t *entries = json_array();

	entries_sort(layout, list, nr);
	for (size_t i = 0; i < top; i++)
		json_array_append_new(entries, folded ? folded_value(&run->host, folded, &list[i])
						      : entry_value(&run->host, layout, &list[i]));
	if (top < nr)
		json_object_set_new(record, "rest", rest_value(&run->host, layout, list + top, nr - top));
	json_object_set_new(record, "entries", entries);
}

static void put_entries(const struct run *run, json_t *record, const struct layout *layout,
			struct reading *reading)
{
	struct folded folded;

	if (!run->keys.detail) {
		put_list(run, record, layout, reading->entries, reading->nr_entries, NULL);
		return;
	}
	fold(&folded, layout, reading, addresses_codes(run->addresses), run->keys.detail);
	put_list(run, record, layout, folded.entries, folded.nr, &folded);
	folded_release(&folded);
}

/* --- the stream ------------------------------------------------------------------------------- */

/* A program that writes a sample just now may have taken its time a little while ago: samples that are
 * younger than this wait for the next reading, so that all come in the order of their times. */
#define SETTLED_NS 1000000

static json_t *sample_record(const struct run *run, size_t i, const struct streamed *sample)
{
	const struct state *state = run->state;
	const struct event *event = &run->plan.events.list[i];
	json_t *record = json_pack("{s:s}", "type", "sample");
	__u64 time = sample->time + state->real_ns;
	struct timespec at = {time / 1000000000, time % 1000000000};

	json_object_set_new(record, "event", value_text(event->name, sizeof(event->name)));
	json_object_set_new(record, "sample_time", value_time(&at));
	json_object_set_new(record, "address", value_hex(sample->address));
	if (sample->latency)
		json_object_set_new(record, "latency", json_integer(sample->latency));
	json_object_set_new(record, "period", json_integer(sample->period));
	put_streamed(record, &run->host, aggregation_layout(state->aggregations[i]), sample->key);
	return record;
}

static int drain_event(struct run *run, size_t i, __u64 before)
{
	struct state *state = run->state;
	struct streamed sample;
	int err = 0;

	while (!err && aggregation_next(state->aggregations[i], before, &sample,
					&state->ring_lost[i])) {
		state->streamed[i]++;
		err = stream_write(&run->stream, sample_record(run, i, &sample), NULL, NULL);
	}
	return err;
}

static int sampling_drain(struct run *run)
{
	__u64 before = clock_ns(CLOCK_MONOTONIC) - SETTLED_NS;
	int err = 0;

	for (size_t i = 0; i < run->plan.events.nr && !err; i++)
		err = drain_event(run, i, before);
	return err;
}

static json_t *stream_value(const struct state *state)
{
	json_int_t streamed = 0, lost = 0;

	for (size_t i = 0; i < state->nr; i++) {
		streamed += state->streamed[i];
		lost += state->ring_lost[i];
	}
	return json_pack("{s:I, s:I}", "samples", streamed, "ring_lost", lost);
}

/* --- intervals -------------------------------------------------------------------------------- */

/* Whether another event of the plan may fall into the same PEBS record. */
static bool collides(const struct events *events, const struct event *event)
{
	size_t precise = 0;

	for (size_t i = 0; i < events->nr; i++)
		precise += events->list[i].attr.precise_ip > 0;
	return event->attr.precise_ip && precise > 1;
}

static struct samples_read read_samples(const struct run *run, const struct event *event,
					const struct count *count, const struct reading *reading)
{
	const struct state *state = run->state;
	const struct perf_event_attr *attr = &event->attr;

	return (struct samples_read){
		.count = count->value,
		.sample_period = attr->freq ? 0 : attr->sample_period,
		.runs = reading->runs,
		.period = reading->period,
		.aggregated = reading->aggregated,
		.table_full = reading->table_full,
		.stack_failed = reading->stack_failed,
		.contexts = counters_opened(run->counters) +
			    (attr->inherit ? forks_so_far() - state->forks : 0),
		.precise = attr->precise_ip,
		.collides = collides(&run->plan.events, event),
		.clock = event_is_clock(event),
		.filtered = attr->exclude_user || attr->exclude_kernel,
	};
}

static struct count count_since(const struct count *now, const struct count *before)
{
	return (struct count){now->value - before->value, now->enabled_ns - before->enabled_ns,
			      now->running_ns - before->running_ns};
}

static json_t *interval_record(const struct run *run, const struct sampled *sampled)
{
	const struct state *state = run->state;
	json_t *record = json_pack("{s:s}", "type", state->sampling->command);
	const struct count *count = sampled->count;

	json_object_set_new(record, "event",
			    value_text(sampled->event->name, sizeof(sampled->event->name)));
	run_put_interval(run, record);
	run_put_missing(run, record, NULL);
	json_object_set_new(record, "value", json_integer(count->value));
	json_object_set_new(record, "enabled_ns", json_integer(count->enabled_ns));
	json_object_set_new(record, "running_ns", json_integer(count->running_ns));
	return record;
}

/* Reads an event; its account is brought up to date. */
static void read_event(struct run *run, size_t i, struct count *count, struct reading *reading)
{
	struct state *state = run->state;
	struct samples before = state->accounts[i];
	struct samples_read read;

	/* The count first: then no sample can be in the tables that is not in the count. */
	counters_read(run->counters, i, count);
	aggregation_read(state->aggregations[i], reading);
	read = read_samples(run, &run->plan.events.list[i], count, reading);
	state->accounts[i] = samples_account(&read, &before);
	state->causes[i] = missed_cause(&read);
}

static json_t *account_value(struct state *state, size_t i, const struct samples *before,
			     const struct reading *reading)
{
	struct samples since = samples_since(&state->accounts[i], before);
	json_t *value = samples_value(&since, state->causes[i]);

	if (state->sampling->reads_stacks)
		json_object_set_new(json_object_get(value, "lost"), "stack_failed",
				    json_integer(since.stack_failed));
	if (state->sampling->knows_throttling)
		json_object_set_new(value, "throttled",
				    json_integer(reading->throttled - state->throttled[i]));
	state->throttled[i] = reading->throttled;
	return value;
}

/* Takes a list out of a record, and writes it as a record of its own. */
static int write_ahead(struct run *run, json_t *record, const char *list, const char *const *kept)
{
	json_t *ahead = json_object();

	for (; *kept; kept++)
		json_object_set(ahead, *kept, json_object_get(record, *kept));
	json_object_set_new(ahead, "type", json_string(list));
	json_object_set(ahead, list, json_object_get(record, list));
	json_object_del(record, list);
	return stream_write(&run->stream, ahead, list, NULL);
}

static int report_event(struct run *run, size_t i)
{
	static const char *const kept[] = {"type", "event", "start_time", "duration_ns", NULL};
	struct state *state = run->state;
	const struct sampling *sampling = state->sampling;
	put_fn put = sampling->put ? sampling->put : put_entries;
	struct samples before = state->accounts[i];
	struct reading reading;
	struct count count, since;
	struct sampled sampled = {&run->plan.events.list[i], i,
				  aggregation_layout(state->aggregations[i]), &reading, &since};
	json_t *record;
	int err;

	read_event(run, i, &count, &reading);
	/* What was mapped before a sample is now among the notes. */
	if (run->addresses)
		addresses_take(run->addresses, true);
	since = count_since(&count, &state->before[i]);
	state->before[i] = count;
	record = interval_record(run, &sampled);
	json_object_set_new(record, "samples", account_value(state, i, &before, &reading));
	if (sampling->complete)
		sampling->complete(run, &sampled, record);
	put(run, record, sampled.layout, &reading);
	if (sampling->ahead && write_ahead(run, record, sampling->ahead, kept))
		return -run->stream.sink.error;
	err = stream_write(&run->stream, record, "entries", kept);
	return err || !sampling->follow ? err : sampling->follow(run, &sampled);
}

static int sampling_report(struct run *run, bool last)
{
	int err = 0;

	for (size_t i = 0; i < run->plan.events.nr && !err; i++) {
		if (last && run->options->stream)
			err = drain_event(run, i, ~0ULL);
		err = err ? err : report_event(run, i);
	}
	return err;
}

/* The whole run's account, over all events. */
static int sampling_finish(struct run *run, json_t *end)
{
	const struct state *state = run->state;
	struct samples sum = {0};
	json_t *value, *lost;

	if (!state || !run->began.tv_sec)
		return 0;
	lost = json_object();
	for (size_t i = 0; i < state->nr; i++) {
		const struct samples *account = &state->accounts[i];

		sum.expected += account->expected;
		sum.uncertainty += account->uncertainty;
		sum.aggregated += account->aggregated;
		sum.table_full += account->table_full;
		sum.stack_failed += account->stack_failed;
	}
	value = json_pack("{s:I, s:I, s:I}", "expected", (json_int_t)sum.expected, "uncertainty",
			  (json_int_t)sum.uncertainty, "aggregated", (json_int_t)sum.aggregated);
	json_object_set_new(lost, "table_full", json_integer(sum.table_full));
	if (state->sampling->reads_stacks)
		json_object_set_new(lost, "stack_failed", json_integer(sum.stack_failed));
	for (size_t i = 0; i < state->nr; i++) {
		const json_t *so_far = json_object_get(lost, state->causes[i]);

		json_object_set_new(lost, state->causes[i],
				    json_integer(json_integer_value(so_far) +
						 state->accounts[i].missed));
	}
	json_object_set_new(value, "lost", lost);
	if (state->sampling->knows_throttling) {
		__u64 throttled = 0;

		for (size_t i = 0; i < state->nr; i++)
			throttled += state->throttled[i];
		json_object_set_new(value, "throttled", json_integer(throttled));
	}
	json_object_set_new(end, "samples", value);
	if (run->options->stream)
		json_object_set_new(end, "stream", stream_value(state));
	return 0;
}

static void sampling_release(struct run *run)
{
	struct state *state = run->state;

	if (!state)
		return;
	for (size_t i = 0; i < state->nr; i++)
		aggregation_close(state->aggregations[i]);
	free(state->aggregations);
	free(state->before);
	free(state->accounts);
	free(state->streamed);
	free(state->ring_lost);
	free(state->throttled);
	free(state->causes);
	free(state);
}

int sampling_run(const struct sampling *sampling, const struct options *options,
		 struct refusal *refusal)
{
	const struct activity activity = {
		.command = sampling->command,
		.details = sampling,
		.plan = sampling->plan,
		.check = sampling_check,
		.describe = sampling_describe,
		.attach = sampling_attach,
		.attach_at = sampling_attach_at,
		.drain = options->stream ? sampling_drain : NULL,
		.report = sampling_report,
		.finish = sampling_finish,
		.release = sampling_release,
	};

	return run_activity(&activity, options, refusal);
}
