// SPDX-License-Identifier: GPL-2.0-only
#include "branch/tracing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "activity/sampling.h"
#include "activity/streaming.h"
#include "aggregation/aggregation.h"
#include "aggregation/pairs.h"
#include "base/clock.h"
#include "base/interned.h"
#include "base/memory.h"
#include "branch/branches.h"
#include "collection/trace.h"
#include "host/processes.h"
#include "plan/denial.h"
#include "record/record.h"
#include "session/names.h"
#include "shared.h"

/* Indices of the plan's events: plan_trace(). */
enum { TRACE, CLOCK };

struct thread {
	pid_t pid, tid;
	char comm[sizeof(comm_t)];
	__u64 number;  /* number of branches so far */
	__u64 arrived; /* target of its last branch; 0: not known */
	/* Counted, but not yet added to the state's counts. */
	struct pairs edges; /* predicted and mispredicted */
	struct pairs ranges;
	__u64 records, broken;
};

struct tracing_run {
	struct activity *activity;
	struct aggregation *aggregation; /* only for its layout: it is not loaded */
	const struct layout *layout;
	bool by_edge, by_range;
	const struct member *kind, *pid, *from, *to, *comm; /* members of the key */
	struct trace *trace;
	struct thread *threads; /* one per place */
	struct interned keys;	/* keys since the last record, by number, without those that were gathered */
	__u64 *counts;		/* one per key */
	void *gathered;		/* those that were named before the end of an interval; NULL: none */
	size_t room;		/* number of keys for which `counts` has room */
	__u64 records;		/* number of branches so far */
	__u64 records_before;
	struct trace_loss before;
	struct count counts_before[2];
	struct streaming *stream; /* NULL: none was asked for */
	int sink_error;
};

/* --- keys ------------------------------------------------------------------------------------- */

static bool has_key(const struct layout *layout, const char *name)
{
	for (size_t i = 0; i < layout->nr_by; i++)
		if (!strcmp(layout->by[i], name))
			return true;
	return false;
}

static void read_layout(struct tracing_run *state)
{
	const struct layout *layout = aggregation_layout(state->aggregation);

	state->layout = layout;
	state->by_edge = has_key(layout, "edge");
	state->by_range = has_key(layout, "range");
	state->kind = layout_key_named(layout, "kind");
	state->pid = layout_key_named(layout, "pid");
	state->from = layout_key_named(layout, "from");
	state->to = layout_key_named(layout, "to");
	state->comm = layout_key_named(layout, "comm");
	interned_init(&state->keys, layout->key_size);
}

static void add_key(struct tracing_run *state, const void *key, __u64 count)
{
	__u32 number = interned_number(&state->keys, key);

	if (number >= state->room) {
		size_t before = state->room;

		state->room = before ? 2 * before : 256;
		state->counts = xrealloc(state->counts, state->room * sizeof(*state->counts));
		memset(state->counts + before, 0, (state->room - before) * sizeof(*state->counts));
	}
	state->counts[number] += count;
}

static void add_branches(struct tracing_run *state, const struct thread *thread, __u32 kind, __u64 from,
			 __u64 to, __u64 count)
{
	__u64 key[state->layout->key_size / sizeof(__u64)];
	char *at = (char *)key;

	if (!count)
		return;
	memset(key, 0, sizeof(key));
	*(__u32 *)(at + state->kind->offset) = kind;
	*(__u32 *)(at + state->pid->offset) = thread->pid;
	*(__u64 *)(at + state->from->offset) = from;
	*(__u64 *)(at + state->to->offset) = to;
	if (state->comm->shown)
		memcpy(at + state->comm->offset, thread->comm, sizeof(thread->comm));
	add_key(state, key, count);
}

/* Adds what a thread has counted to the state's counts, under the thread's present name. */
static void settle_thread(struct tracing_run *state, struct thread *thread)
{
	/* Records count branches in terms of samples. In a trace each branch is a sample of its own. */
	add_branches(state, thread, BRANCH_STACK, 1, 0, thread->records);
	add_branches(state, thread, BRANCH_BROKEN, 0, 0, thread->broken);
	for (size_t i = 0; i < thread->edges.nr_slots; i++) {
		const struct pair *edge = &thread->edges.slots[i];

		add_branches(state, thread, BRANCH_EDGE, edge->from, edge->to, edge->counts[0]);
		add_branches(state, thread, BRANCH_MISSED, edge->from, edge->to, edge->counts[1]);
	}
	for (size_t i = 0; i < thread->ranges.nr_slots; i++) {
		const struct pair *range = &thread->ranges.slots[i];

		add_branches(state, thread, BRANCH_RANGE, range->from, range->to, range->counts[0]);
	}
	thread->records = thread->broken = 0;
	pairs_clear(&thread->edges);
	pairs_clear(&thread->ranges);
}

/* --- taking in -------------------------------------------------------------------------------- */

static bool is_kernel(__u64 address)
{
	return address >> 63;
}

/* Adds the range from the target of the last branch to this branch. The thread ran straight through it,
 * unless an interrupt or a system call that is not in the trace came in between. */
static void add_range(struct thread *thread, __u64 begin, __u64 end)
{
	if (begin <= end && is_kernel(begin) == is_kernel(end))
		pairs_add(&thread->ranges, begin, end, false);
	else
		thread->broken++;
}

static void count_traced(const struct tracing_run *state, struct thread *thread, const struct traced *traced)
{
	for (size_t i = 0; i < traced->nr; i++) {
		const struct trace_record *record = &traced->records[i];

		if (state->by_edge)
			pairs_add(&thread->edges, record->from, record->to, trace_missed(record));
		if (state->by_range && thread->arrived)
			add_range(thread, thread->arrived, record->from);
		thread->arrived = record->to;
	}
	thread->records += traced->nr;
}

/* A thread's name may change at each exec. After its end it keeps the last name. */
static void read_comm(struct tracing_run *state, struct thread *thread)
{
	char path[64], comm[sizeof(thread->comm)] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", proc_number(thread->tid));
	file = fopen(path, "re");
	if (!file)
		return;
	if (fread(comm, 1, sizeof(comm) - 1, file))
		comm[strcspn(comm, "\n")] = '\0';
	fclose(file);
	if (!*comm || !strncmp(comm, thread->comm, sizeof(comm)))
		return;
	settle_thread(state, thread);
	memset(thread->comm, 0, sizeof(thread->comm));
	strcpy(thread->comm, comm);
}

static void take_traced(void *context, const struct traced *traced)
{
	struct tracing_run *state = context;
	struct thread *thread = &state->threads[traced->place];

	thread->pid = traced->pid;
	thread->tid = traced->tid;
	if (!traced->nr)
		thread->arrived = 0;
	if (traced->nr && state->comm->shown)
		read_comm(state, thread);
	count_traced(state, thread, traced);
	state->records += traced->nr;
	if (state->stream && !state->sink_error)
		state->sink_error = streaming_branches(state->stream, traced, thread->number);
	thread->number += traced->nr;
}

static void settle_all(struct tracing_run *state)
{
	for (size_t i = 0; i < counters_places(state->activity->counters)->nr; i++)
		settle_thread(state, &state->threads[i]);
}

static size_t count_keys(const struct tracing_run *state)
{
	size_t nr = state->keys.nr;

	for (size_t i = 0; i < counters_places(state->activity->counters)->nr; i++)
		nr += state->threads[i].edges.nr + state->threads[i].ranges.nr;
	return nr;
}

/* --- names before the end of an interval -------------------------------------------------------- */

/* How long naming may take: traced threads whose buffers are full run untraced meanwhile. */
#define NAMING_NS 200000000ULL

static void release_entries(struct reading *reading)
{
	for (size_t i = 0; i < reading->nr_entries; i++)
		free((void *)reading->entries[i].values);
	free(reading->entries);
}

static void read_counts(struct tracing_run *state, struct reading *reading);

/* Keys that have no names yet stay. Returns whether there are none. */
static bool name_keys(struct tracing_run *state, const struct gathering *gathering)
{
	struct reading reading;
	struct interned before;
	bool all = true;

	read_counts(state, &reading);
	before = state->keys;
	interned_init(&state->keys, before.size);
	for (size_t i = 0; i < reading.nr_entries; i++) {
		const struct entry *entry = &reading.entries[i];

		if (gathering->take(state->gathered, entry))
			continue;
		all = false;
		add_key(state, entry->key, entry->values[0]);
	}
	release_entries(&reading);
	interned_release(&before);
	return all;
}

/* Names what was traced so far, and keeps the larger part of it if it is too much. */
static void name_early(struct tracing_run *state)
{
	const struct activity *activity = state->activity;
	const struct gathering *gathering = ((const struct tracing *)activity->details)->gathering;
	__u64 now = clock_ns(CLOCK_MONOTONIC);
	size_t most = sampling_most_keys(activity);
	struct codes *codes;
	bool all;

	settle_all(state);
	codes = reader_codes_early(activity->reader, now + NAMING_NS);
	if (!state->gathered)
		state->gathered = gathering->begin(activity, codes, state->layout);
	all = name_keys(state, gathering);
	gathering_trim(gathering, &state->gathered, 1, codes, most);
	if (all)
		reader_named(activity->reader, now);
}

static void on_due(void *context)
{
	struct activity *activity = context;
	struct tracing_run *state = activity->state;

	if (!state->trace)
		return;
	trace_read(state->trace, take_traced, state);
	trace_resume(state->trace);
	name_early(state);
}

void *tracing_gathered(const struct activity *activity, const struct layout *layout)
{
	const struct tracing *tracing = activity->details;
	struct tracing_run *state = activity->state;
	struct codes *codes = reader_codes(activity->reader);
	void *gathered = state->gathered ?: tracing->gathering->begin(activity, codes, layout);

	state->gathered = NULL;
	return gathered;
}

static int tracing_drain(struct activity *activity)
{
	struct tracing_run *state = activity->state;

	if (activity->streams)
		reader_take(activity->reader, true);
	trace_read(state->trace, take_traced, state);
	trace_resume(state->trace);
	if (count_keys(state) > sampling_most_keys(activity) / 2) {
		reader_take(activity->reader, true);
		name_early(state);
	}
	return state->sink_error;
}

/* --- giving out ------------------------------------------------------------------------------- */

/* Gives what has been counted since the last record, in the form of an aggregation's reading. */
static void read_counts(struct tracing_run *state, struct reading *reading)
{
	*reading = (struct reading){.entries = xcalloc(state->keys.nr + 1, sizeof(*reading->entries))};
	for (size_t number = 0; number < state->keys.nr; number++) {
		struct value_head *values;

		if (!state->counts[number])
			continue;
		values = xcalloc(1, state->layout->value_size);
		/* Each branch stands for itself. */
		values->samples = values->period = state->counts[number];
		reading->entries[reading->nr_entries++] =
			(struct entry){interned_at(&state->keys, number), (__u64 *)values};
		state->counts[number] = 0;
	}
}

static struct count since(const struct count *now, struct count *before)
{
	struct count difference = {now->value - before->value, now->enabled_ns - before->enabled_ns,
				   now->running_ns - before->running_ns};

	*before = *now;
	return difference;
}

/* The account: what there is, what is missing, and how long the threads ran untraced. */
static json_t *account_value(__u64 records, const struct trace_loss *loss, __u64 thread_ns, __u64 running_ns)
{
	bool complete = !loss->buffer_full && !loss->notices_lost;

	return json_pack("{s:I, s:s, s:{s:I, s:I}, s:I, s:I}", "records", (json_int_t)records, "status",
			 complete ? "complete" : "interrupted", "lost", "buffer_full",
			 (json_int_t)loss->buffer_full, "notices_lost", (json_int_t)loss->notices_lost,
			 "thread_ns", (json_int_t)thread_ns, "untraced_ns",
			 (json_int_t)(thread_ns > running_ns ? thread_ns - running_ns : 0));
}

static int tracing_report(struct activity *activity, bool last)
{
	const struct tracing *tracing = activity->details;
	struct tracing_run *state = activity->state;
	struct trace_loss loss, lost;
	struct count now[2], trace, clock;
	struct reading reading;
	json_t *record = json_pack("{s:s}", "type", "branch");
	const struct event *event = &activity->plan.events.list[TRACE];
	int err;

	reader_take(activity->reader, true);
	/* After the last reading, the trace is disabled and must not be resumed. */
	trace_read(state->trace, take_traced, state);
	if (!last)
		trace_resume(state->trace);
	counters_read(activity->counters, TRACE, &now[TRACE]);
	counters_read(activity->counters, CLOCK, &now[CLOCK]);
	trace = since(&now[TRACE], &state->counts_before[TRACE]);
	clock = since(&now[CLOCK], &state->counts_before[CLOCK]);
	loss = trace_loss(state->trace);
	lost = (struct trace_loss){loss.buffer_full - state->before.buffer_full,
				   loss.notices_lost - state->before.notices_lost};
	state->before = loss;

	json_object_set_new(record, "event", value_text(event->name, sizeof(event->name)));
	activity_put_interval(activity, record);
	json_object_set_new(record, "enabled_ns", json_integer(trace.enabled_ns));
	json_object_set_new(record, "running_ns", json_integer(trace.running_ns));
	json_object_set_new(
		record, "trace",
		account_value(state->records - state->records_before, &lost, clock.value, trace.running_ns));
	state->records_before = state->records;
	settle_all(state);
	read_counts(state, &reading);
	tracing->put(activity, record, state->layout, &reading);
	json_object_del(record, "stacks"); /* a trace has no stacks */
	release_entries(&reading);
	interned_clear(&state->keys);
	err = activity_write(activity, record);
	return state->sink_error ? state->sink_error : err;
}

static int tracing_finish(struct activity *activity, json_t *end)
{
	const struct tracing_run *state = activity->state;

	if (!state || !timespec_is_set(&activity->began))
		return 0;
	json_object_set_new(end, "trace",
			    account_value(state->records, &state->before, state->counts_before[CLOCK].value,
					  state->counts_before[TRACE].running_ns));
	if (state->stream)
		json_object_set_new(end, "stream", streaming_value(state->stream));
	return 0;
}

/* --- beginning and end ------------------------------------------------------------------------ */

static int tracing_check(struct activity *activity, struct refusal *refusal)
{
	struct tracing_run *state = xcalloc(1, sizeof(*state));

	activity->state = state;
	state->activity = activity;
	keys_choose(&activity->keys, activity->options->by,
		    ((const struct tracing *)activity->details)->code_keys);
	if (keys_open(&state->aggregation, "branch", &activity->keys, &activity->session->host,
		      sampling_tables_most(activity), refusal))
		return -1;
	read_layout(state);
	if (activity->streams) {
		state->stream = streaming_new(activity, NULL);
		streaming_add_trace(state->stream, &activity->plan.events.list[TRACE]);
	}
	return 0;
}

static int tracing_attach(struct activity *activity, struct refusal *refusal)
{
	struct tracing_run *state = activity->state;
	int err;

	if (names_read(&activity->reader, activity->session->names, &activity->plan.target,
		       activity_child(activity), activity->keys.detail | CODE_SYMBOL,
		       activity->options->interval_ms, refusal))
		return -1;
	reader_on_due(activity->reader, on_due, activity);
	err = trace_open(&state->trace, activity->counters, TRACE);
	if (err)
		return trace_denied(refusal, &activity->session->host, -err);
	state->threads = xcalloc(counters_places(activity->counters)->nr, sizeof(*state->threads));
	return 0;
}

static void tracing_describe(struct activity *activity, json_t *start)
{
	const struct tracing_run *state = activity->state;

	json_object_set_new(start, "by", keys_value(&activity->keys, state->layout));
	json_object_set_new(start, "trace_buffer_bytes", json_integer(trace_buffer_size(state->trace)));
}

static int tracing_wake_fd(const struct activity *activity)
{
	return trace_descriptor(((const struct tracing_run *)activity->state)->trace);
}

/* Closes the buffers, because their descriptors are about to be closed. */
static void tracing_detach(struct activity *activity)
{
	struct tracing_run *state = activity->state;

	trace_close(state->trace);
	state->trace = NULL;
	for (size_t i = 0; state->threads && i < counters_places(activity->counters)->nr; i++) {
		free(state->threads[i].edges.slots);
		free(state->threads[i].ranges.slots);
	}
	free(state->threads);
	state->threads = NULL;
}

static void tracing_release(struct activity *activity)
{
	struct tracing_run *state = activity->state;

	if (!state)
		return;
	if (state->gathered)
		((const struct tracing *)activity->details)->gathering->release(state->gathered);
	if (state->layout)
		interned_release(&state->keys);
	aggregation_close(state->aggregation);
	streaming_release(state->stream);
	free(state->counts);
	free(state);
}

const struct activity_ops tracing_ops = {
	.plan = plan_trace,
	.check = tracing_check,
	.describe = tracing_describe,
	.want = sampling_want_entries,
	.attach = tracing_attach,
	.drain = tracing_drain,
	.wake_fd = tracing_wake_fd,
	.report = tracing_report,
	.detach = tracing_detach,
	.finish = tracing_finish,
	.release = tracing_release,
};
