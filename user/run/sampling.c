// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "collection/aggregation.h"
#include "record/key.h"
#include "record/record.h"
#include "record/samples.h"
#include "run/run.h"
#include "run/sampling.h"

#define DEFAULT_TABLE_ENTRIES 20

struct state {
	const struct sampling *sampling;
	size_t nr;                          /* events */
	struct aggregation **aggregations;  /* one an event: with inherit the program alone tells them apart */
	struct count *before;               /* an event's */
	struct samples *accounts;           /* an event's, so far */
	const char **causes;                /* an event's missed_cause() */
	__u64 forks;                        /* of the machine, when the run began */
};

static int sampling_check(struct run *run, struct refusal *refusal)
{
	struct state *state = calloc(1, sizeof(*state));

	run->state = state;
	state->sampling = run->activity->details;
	state->nr = run->plan.events.nr;
	state->aggregations = calloc(state->nr, sizeof(*state->aggregations));
	state->before = calloc(state->nr, sizeof(*state->before));
	state->accounts = calloc(state->nr, sizeof(*state->accounts));
	state->causes = calloc(state->nr, sizeof(*state->causes));
	for (size_t i = 0; i < state->nr; i++)
		if (aggregation_open(&state->aggregations[i], state->sampling->aggregation,
				     run->options->by ? run->options->by : state->sampling->default_keys,
				     refusal))
			return -1;
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

static int sampling_attach(struct run *run, struct refusal *refusal)
{
	struct state *state = run->state;

	state->forks = forks_so_far();
	for (size_t i = 0; i < state->nr; i++) {
		if (aggregation_load(state->aggregations[i], &run->host, refusal))
			return -1;
		for (size_t j = 0; j < counters_instances(run->counters); j++)
			if (aggregation_attach(state->aggregations[i],
					       counters_fd(run->counters, i, j), &run->host, refusal))
				return -1;
	}
	return 0;
}

static void sampling_describe(struct run *run, json_t *start)
{
	const struct state *state = run->state;
	const struct layout *layout = aggregation_layout(state->aggregations[0]);
	json_t *by = json_array();

	for (size_t i = 0; i < layout->nr_by; i++)
		json_array_append_new(by, json_string(layout->by[i]));
	json_object_set_new(start, "by", by);
}

/* --- entries ------------------------------------------------------------------------------------------ */

static int by_samples(const void *a, const void *b, void *key_size)
{
	const struct entry *x = a, *y = b;

	if (x->values[0] != y->values[0])
		return x->values[0] < y->values[0] ? 1 : -1;
	return memcmp(x->key, y->key, *(const size_t *)key_size); /* the same order in every run */
}

static json_t *entry_value(const struct layout *layout, const struct entry *entry)
{
	json_t *value = json_object();

	for (size_t i = 0; i < layout->nr_keys; i++)
		if (layout->keys[i].shown)
			json_object_set_new(value, layout->keys[i].name,
					    key_value(&layout->keys[i], entry->key));
	for (size_t i = 0; i < layout->nr_values; i++)
		json_object_set_new(value, layout->values[i].name,
				    json_integer(entry->values[layout->values[i].offset / 8]));
	return value;
}

/* The entries beyond --top, summed up. */
static json_t *rest_value(const struct layout *layout, const struct entry *entries, size_t nr)
{
	json_t *value = json_pack("{s:I}", "entries", (json_int_t)nr);

	for (size_t i = 0; i < layout->nr_values; i++) {
		__u64 sum = 0;

		for (size_t j = 0; j < nr; j++)
			sum += entries[j].values[layout->values[i].offset / 8];
		json_object_set_new(value, layout->values[i].name, json_integer(sum));
	}
	return value;
}

size_t sampling_most_entries(const struct run *run, size_t nr)
{
	size_t top = run->options->top;

	if (!top && run->stream.format == FORMAT_TABLE)
		top = DEFAULT_TABLE_ENTRIES;
	return top && top < nr ? top : nr;
}

static void put_entries(const struct run *run, json_t *record, const struct layout *layout,
			struct reading *reading)
{
	size_t top = sampling_most_entries(run, reading->nr_entries);
	size_t key_size = layout->key_size;
	json_t *entries = json_array();

	qsort_r(reading->entries, reading->nr_entries, sizeof(*reading->entries), by_samples, &key_size);
	for (size_t i = 0; i < top; i++)
		json_array_append_new(entries, entry_value(layout, &reading->entries[i]));
	if (top < reading->nr_entries)
		json_object_set_new(record, "rest", rest_value(layout, reading->entries + top,
							       reading->nr_entries - top));
	json_object_set_new(record, "entries", entries);
}

/* --- records -------------------------------------------------------------------------------------------- */

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
		.contexts = counters_instances(run->counters) +
			    (attr->inherit ? forks_so_far() - state->forks : 0),
		.clock = event_is_clock(event),
		.filtered = attr->exclude_user || attr->exclude_kernel,
	};
}

static json_t *account_value(const struct state *state, const struct samples *samples, const char *cause)
{
	json_t *value = samples_value(samples, cause);

	if (state->sampling->reads_stacks)
		json_object_set_new(json_object_get(value, "lost"), "stack_failed",
				    json_integer(samples->stack_failed));
	return value;
}

static int report_event(struct run *run, size_t i)
{
	static const char *const kept[] = {"type", "event", "start_time", "duration_ns", NULL};
	struct state *state = run->state;
	put_fn put = state->sampling->put ? state->sampling->put : put_entries;
	const struct event *event = &run->plan.events.list[i];
	struct samples before = state->accounts[i], since;
	struct samples_read read;
	struct reading reading;
	struct count count;
	json_t *record;

	/* The count first: then no sample can be in the tables that is not in the count. */
	counters_read(run->counters, i, &count);
	aggregation_read(state->aggregations[i], &reading);
	read = read_samples(run, event, &count, &reading);
	state->accounts[i] = samples_account(&read, &before);
	state->causes[i] = missed_cause(&read);
	since = samples_since(&state->accounts[i], &before);

	record = json_pack("{s:s}", "type", state->sampling->command);
	json_object_set_new(record, "event", value_text(event->name, sizeof(event->name)));
	run_put_interval(run, record);
	json_object_set_new(record, "value", json_integer(count.value - state->before[i].value));
	json_object_set_new(record, "enabled_ns",
			    json_integer(count.enabled_ns - state->before[i].enabled_ns));
	json_object_set_new(record, "running_ns",
			    json_integer(count.running_ns - state->before[i].running_ns));
	json_object_set_new(record, "samples", account_value(state, &since, state->causes[i]));
	put(run, record, aggregation_layout(state->aggregations[i]), &reading);
	state->before[i] = count;
	return stream_write(&run->stream, record, "entries", kept);
}

static int sampling_report(struct run *run, bool last)
{
	int err = 0;

	for (size_t i = 0; i < run->plan.events.nr && !err; i++)
		err = report_event(run, i);
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
	json_object_set_new(end, "samples", value);
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
		.look = sampling->look,
		.report = sampling_report,
		.finish = sampling_finish,
		.release = sampling_release,
	};

	return run_activity(&activity, options, refusal);
}
