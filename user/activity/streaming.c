// SPDX-License-Identifier: GPL-2.0-only
#include "activity/streaming.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/memory.h"
#include "record/code.h"
#include "record/entry.h"
#include "record/key.h"
#include "record/owner.h"
#include "record/record.h"
#include "session/names.h"

/* Samples that wait for names. With a key of 80 bytes, they take 1 MiB. */
#define WAITING_MOST 8192

/* If there are more codes, all are forgotten; otherwise a stream of months would hold each one that it met.
 */
#define CODES_MOST 8192

/* How long a lookup may take before the next samples are read from the ring. */
#define LOOKUP_NS 5000000ULL

const struct code_key stream_fields[] = {
	{"symbol", "ip,pid,comm", CODE_SYMBOL},
	{"line", "ip,pid,comm", CODE_LINE},
	{"module", "ip,pid,comm", CODE_MODULE},
	{"place", "ip,pid,comm", CODE_PLACE},
	{"container", "cgroup", 0},
	{"time", NULL, 0},
	{"addr", NULL, 0},
	{"latency", NULL, 0},
	{"source", NULL, 0},
	{"period", NULL, 0},
	{0},
};

/* The samples of an event. */
struct flow {
	const struct event *event;
	json_t *name;
	struct aggregation *aggregation;
	bool has_next;
	struct streamed next;  /* if it has one: the oldest that is not taken */
	struct ring_loss loss; /* before that one; not told yet */
};

/* A sample that waits for its name. Its key is a copy. */
struct waiting {
	size_t flow;
	struct streamed sample;
};

struct streaming {
	struct activity *activity;
	bool address, latency, period, source, container;
	struct flow *flows;
	size_t nr_flows;
	const struct layout *layout;		/* of all aggregations: they run the same program */
	const struct member *ip, *pid, *cgroup; /* of the key */

	struct waiting *waiting; /* a ring; NULL: no code is named */
	char *keys;
	size_t first, nr;

	/* The values of codes by their numbers, as long as no code is forgotten; NULL: not made yet. */
	json_t **codes;
	size_t nr_codes;

	__s64 realtime; /* CLOCK_REALTIME minus CLOCK_MONOTONIC, ns */
	__u64 written, unwritten, lost;
	bool traces; /* `lost` counts the places where branches are missing */
};

struct streaming *streaming_new(struct activity *activity, const char *shows)
{
	struct streaming *streaming = xcalloc(1, sizeof(*streaming));

	streaming->activity = activity;
	streaming->address = list_has(shows, "addr");
	streaming->latency = list_has(shows, "latency");
	streaming->period = list_has(shows, "period");
	streaming->source = list_has(shows, "source");
	streaming->container = list_has(shows, "container");
	return streaming;
}

static void begin_waiting(struct streaming *streaming)
{
	const struct layout *layout = streaming->layout;

	streaming->ip = layout_key_named(layout, "ip");
	streaming->pid = layout_key_named(layout, "pid");
	streaming->cgroup = layout_key_named(layout, "cgroup");
	if (!streaming->activity->keys.detail)
		return;
	streaming->waiting = xcalloc(WAITING_MOST, sizeof(*streaming->waiting));
	streaming->keys = xcalloc(WAITING_MOST, layout->key_size);
}

void streaming_add(struct streaming *streaming, const struct event *event, struct aggregation *aggregation)
{
	if (!streaming->source)
		aggregation_conceal(aggregation, "source");
	aggregation_stream(aggregation);
	*xappend(streaming->flows, streaming->nr_flows) =
		(struct flow){.event = event,
			      .name = value_text(event->name, sizeof(event->name)),
			      .aggregation = aggregation};
	if (streaming->layout)
		return;
	streaming->layout = aggregation_layout(aggregation);
	begin_waiting(streaming);
}

void streaming_add_trace(struct streaming *streaming, const struct event *event)
{
	streaming->traces = true;
	*xappend(streaming->flows, streaming->nr_flows) =
		(struct flow){.event = event, .name = value_text(event->name, sizeof(event->name))};
}

static void forget_codes(struct streaming *streaming)
{
	for (size_t i = 0; i < streaming->nr_codes; i++)
		json_decref(streaming->codes[i]);
	free(streaming->codes);
	streaming->codes = NULL;
	streaming->nr_codes = 0;
}

void streaming_release(struct streaming *streaming)
{
	if (!streaming)
		return;
	forget_codes(streaming);
	for (size_t i = 0; i < streaming->nr_flows; i++)
		json_decref(streaming->flows[i].name);
	free(streaming->flows);
	free(streaming->waiting);
	free(streaming->keys);
	free(streaming);
}

/* --- records ---------------------------------------------------------------------------------- */

static char *time_of(const struct streaming *streaming, __u64 monotonic, char text[TIME_TEXT])
{
	__u64 time = monotonic + streaming->realtime;
	struct timespec at = {time / 1000000000, time % 1000000000};

	return time_text(&at, text);
}

static json_t *code_of(struct streaming *streaming, __u32 number)
{
	size_t before = streaming->nr_codes;

	streaming->codes =
		xfit(streaming->codes, number + 1, &streaming->nr_codes, sizeof(*streaming->codes));
	memset(streaming->codes + before, 0, (streaming->nr_codes - before) * sizeof(*streaming->codes));
	if (!streaming->codes[number])
		streaming->codes[number] =
			code_value(codes_at(reader_codes_early(streaming->activity->reader, 0), number));
	return json_incref(streaming->codes[number]);
}

static void add_owner(const struct streaming *streaming, struct fields *fields, const void *key)
{
	json_t *cgroup = member_value(&streaming->activity->session->host, streaming->cgroup, key);

	owner_add(fields, json_string_value(cgroup));
	json_decref(cgroup);
}

/* Whether there is room for a sample or branch in the queues, perhaps once what waits there has been written.
 */
static bool has_room(const struct activity *activity, const char *type, int *err)
{
	struct session *session = activity->session;

	if (session_has_room(session, activity->name))
		return true;
	*err = session_flush(session);
	return !*err && session_takes_single(session, type, activity->name);
}

/* `code` is taken over; NULL: none is shown. */
static int write_sample(struct streaming *streaming, const struct flow *flow, const struct streamed *sample,
			json_t *code)
{
	const struct host *host = &streaming->activity->session->host;
	struct fields fields = {.nr = 0};
	char time[TIME_TEXT];
	int err = 0;

	if (!has_room(streaming->activity, "sample", &err)) {
		json_decref(code);
		streaming->unwritten++;
		return err;
	}
	activity_add_event(&fields, flow->event, flow->name);
	fields_text(&fields, "sample_time", time_of(streaming, sample->time, time), TIME_TEXT - 1);
	if (streaming->address)
		fields_value(&fields, "address", value_hex(sample->address));
	if (streaming->latency && sample->latency)
		fields_number(&fields, "latency", sample->latency);
	if (streaming->period)
		fields_number(&fields, "period", sample->period);
	add_streamed(&fields, host, streaming->layout, sample->key);
	if (streaming->container)
		add_owner(streaming, &fields, sample->key);
	fields_value(&fields, "code", code);
	streaming->written++;
	return activity_write_fields(streaming->activity, "sample", &fields);
}

static int write_loss(struct streaming *streaming, struct flow *flow)
{
	struct ring_loss loss = flow->loss;
	struct fields fields = {.nr = 0};
	char since[TIME_TEXT], until[TIME_TEXT];

	flow->loss = (struct ring_loss){0};
	streaming->lost += loss.samples;
	activity_add_event(&fields, flow->event, flow->name);
	fields_text(&fields, "cause", "ring_full", strlen("ring_full"));
	if (loss.since)
		fields_text(&fields, "since", time_of(streaming, loss.since, since), TIME_TEXT - 1);
	fields_text(&fields, "until", time_of(streaming, loss.until, until), TIME_TEXT - 1);
	fields_number(&fields, "missing", loss.samples);
	return activity_write_fields(streaming->activity, "lost", &fields);
}

/* --- names ------------------------------------------------------------------------------------ */

/* Whether a sample waits for the name of its code: as long as a lookup takes now, as the interval's names
 * may, or not at all. */
enum patience { FOR_NOW, FOR_INTERVAL, NO_LONGER };

/* Returns false if the sample's code has no name yet and may wait for it. */
static bool name(struct streaming *streaming, const void *key, enum patience patience, json_t **code)
{
	const struct activity *activity = streaming->activity;
	struct reader *reader = activity->reader;
	struct codes *codes = patience == FOR_INTERVAL
				      ? reader_codes(reader)
				      : reader_codes_early(reader, clock_ns(CLOCK_MONOTONIC) + LOOKUP_NS);
	const char *comm = key_comm(streaming->layout, key);
	__u64 address = member_number(streaming->ip, key);
	pid_t pid = member_number(streaming->pid, key);
	__u32 number;

	if (patience != FOR_NOW)
		number = codes_number(codes, activity->keys.detail, pid, comm, address, 1);
	else if (!codes_try(codes, activity->keys.detail, pid, comm, address, 1, &number))
		return false;
	*code = code_of(streaming, number);
	return true;
}

static void *key_at(const struct streaming *streaming, size_t i)
{
	return streaming->keys + i * streaming->layout->key_size;
}

static void keep(struct streaming *streaming, size_t flow)
{
	size_t at = (streaming->first + streaming->nr++) % WAITING_MOST;
	struct waiting *waiting = &streaming->waiting[at];

	*waiting = (struct waiting){flow, streaming->flows[flow].next};
	waiting->sample.key = memcpy(key_at(streaming, at), waiting->sample.key, streaming->layout->key_size);
}

static int write_waiting(struct streaming *streaming, __u64 now, enum patience patience)
{
	int err = 0;

	while (streaming->nr && !err) {
		const struct waiting *waiting = &streaming->waiting[streaming->first];
		bool late = waiting->sample.time + STREAM_WAIT_NS < now;
		json_t *code;

		if (!name(streaming, waiting->sample.key, late && patience == FOR_NOW ? NO_LONGER : patience,
			  &code))
			break;
		err = write_sample(streaming, &streaming->flows[waiting->flow], &waiting->sample, code);
		streaming->first = (streaming->first + 1) % WAITING_MOST;
		streaming->nr--;
	}
	return err;
}

/* What has ended before the oldest sample that waits is needed no more. */
static void forget_ended(struct streaming *streaming, __u64 before)
{
	struct codes *codes = reader_codes_early(streaming->activity->reader, 0);
	bool *used;
	__u32 *numbers;

	forget_codes(streaming);
	reader_named(streaming->activity->reader,
		     streaming->nr ? streaming->waiting[streaming->first].sample.time : before);
	if (codes_nr(codes) < CODES_MOST && codes_nr_places(codes) < CODES_MOST)
		return;
	used = xcalloc(codes_nr(codes) + 1, sizeof(*used));
	numbers = xcalloc(codes_nr(codes) + 1, sizeof(*numbers));
	codes_keep(codes, used, numbers);
	free(used);
	free(numbers);
}

/* --- draining --------------------------------------------------------------------------------- */

/* The event whose next sample is the oldest; NULL: there is none before this time. */
static struct flow *oldest(struct streaming *streaming, __u64 before)
{
	struct flow *found = NULL;

	for (size_t i = 0; i < streaming->nr_flows; i++) {
		struct flow *flow = &streaming->flows[i];

		if (!flow->has_next)
			flow->has_next =
				aggregation_next(flow->aggregation, before, &flow->next, &flow->loss);
		if (flow->has_next && (!found || flow->next.time < found->next.time))
			found = flow;
	}
	return found;
}

static int take(struct streaming *streaming, struct flow *flow, __u64 now)
{
	int err = 0;

	if (flow->loss.samples) {
		err = streaming->waiting ? write_waiting(streaming, now, NO_LONGER) : 0;
		err = err ? err : write_loss(streaming, flow);
	}
	if (err)
		return err;
	if (!streaming->waiting)
		return write_sample(streaming, flow, &flow->next, NULL);
	keep(streaming, flow - streaming->flows);
	return streaming->nr == WAITING_MOST ? write_waiting(streaming, now, NO_LONGER) : 0;
}

/* The clocks' difference changes when the system's clock is set or slewed. Smaller changes are those of
 * reading them, and would put samples out of order. */
#define CLOCK_SET_NS 1000000

static void see_clock(struct streaming *streaming)
{
	__s64 now = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC), change = now - streaming->realtime;

	if (change > CLOCK_SET_NS || change < -CLOCK_SET_NS)
		streaming->realtime = now;
}

int streaming_drain(struct streaming *streaming, __u64 before, bool all)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC);
	struct flow *flow;
	int err = 0;

	see_clock(streaming);
	if (streaming->waiting)
		reader_take(streaming->activity->reader, all);
	while (!err && (flow = oldest(streaming, before))) {
		err = take(streaming, flow, now);
		flow->has_next = false;
	}
	if (!streaming->waiting || err)
		return err;
	err = write_waiting(streaming, now, all ? FOR_INTERVAL : FOR_NOW);
	forget_ended(streaming, before);
	return err;
}

/* --- traces ----------------------------------------------------------------------------------- */

static json_t *place_of(struct streaming *streaming, pid_t pid, __u64 address)
{
	struct codes *codes = reader_codes(streaming->activity->reader);

	return code_of(streaming, codes_number(codes, CODE_PLACE, pid, NULL, address, 1));
}

static int write_branch(struct streaming *streaming, const struct traced *traced,
			const struct trace_record *record, __u64 number)
{
	struct fields fields = {.nr = 0};
	int err = 0;

	if (!has_room(streaming->activity, "traced", &err)) {
		streaming->unwritten++;
		return err;
	}
	activity_add_event(&fields, streaming->flows->event, streaming->flows->name);
	fields_number(&fields, "pid", traced->pid);
	fields_number(&fields, "tid", traced->tid);
	fields_number(&fields, "number", number);
	fields_value(&fields, "from", place_of(streaming, traced->pid, record->from));
	fields_value(&fields, "to", place_of(streaming, traced->pid, record->to));
	fields_value(&fields, "mispredicted", json_boolean(trace_missed(record)));
	streaming->written++;
	return activity_write_fields(streaming->activity, "traced", &fields);
}

/* The kernel does not say how many branches are missing, nor when they were taken. */
static int write_gap(struct streaming *streaming, const struct traced *traced, __u64 number)
{
	struct fields fields = {.nr = 0};
	char until[TIME_TEXT];

	streaming->lost++;
	activity_add_event(&fields, streaming->flows->event, streaming->flows->name);
	fields_text(&fields, "cause", traced->cause, strlen(traced->cause));
	fields_text(&fields, "until", time_of(streaming, clock_ns(CLOCK_MONOTONIC), until), TIME_TEXT - 1);
	fields_number(&fields, "pid", traced->pid);
	fields_number(&fields, "tid", traced->tid);
	fields_number(&fields, "number", number);
	return activity_write_fields(streaming->activity, "lost", &fields);
}

int streaming_branches(struct streaming *streaming, const struct traced *traced, __u64 first)
{
	int err = 0;

	see_clock(streaming);
	if (!traced->nr)
		return write_gap(streaming, traced, first);
	for (size_t i = 0; i < traced->nr && !err; i++)
		err = write_branch(streaming, traced, &traced->records[i], first + i);
	/* What is named early gives codes other numbers. */
	forget_codes(streaming);
	return err;
}

json_t *streaming_value(const struct streaming *streaming)
{
	json_t *value = json_pack("{s:I, s:I}", streaming->traces ? "branches" : "samples",
				  (json_int_t)streaming->written, streaming->traces ? "gaps" : "ring_lost",
				  (json_int_t)streaming->lost);

	if (streaming->unwritten)
		json_object_set_new(value, "queue_full", json_integer(streaming->unwritten));
	return value;
}
