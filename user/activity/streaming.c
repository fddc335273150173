// SPDX-License-Identifier: GPL-2.0-only
#include "activity/streaming.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "activity/thinning.h"
#include "aggregation/stacks.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/memory.h"
#include "host/host.h"
#include "record/chains.h"
#include "record/code.h"
#include "record/compact.h"
#include "record/entry.h"
#include "record/key.h"
#include "record/owner.h"
#include "record/record.h"
#include "session/names.h"
#include "shared.h"

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
	{"stack", "stack,pid,comm", CODE_SYMBOL},
	{"branches", "pid,comm", CODE_SYMBOL},
	{"container", "cgroup", 0},
	{"phys", NULL, 0},
	{"regs", NULL, 0},
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
	const char *text; /* that is it */
	size_t length;
	struct aggregation *aggregation;
	bool has_next;
	struct streamed next; /* if it has one: the oldest that is not taken */
	struct thinned_row row;
	struct ring_loss loss; /* before that one; not told yet */
};

/* A sample that may wait for its name. Then its key is a copy. */
struct waiting {
	size_t flow;
	unsigned int every; /* see thinning_take() */
	struct streamed sample;
};

/* A code as samples show it. */
struct shown_code {
	json_t *value;	     /* NULL: not made yet */
	bool again;	     /* a sample had it */
	struct compact text; /* the same as JSON; empty: not made yet */
};

struct streaming {
	struct activity *activity;
	bool address, latency, period, source, container, physical;
	bool code; /* the instruction's names are asked for */
	bool registers, stack, branches;
	struct ring_extras extras;
	size_t tail;		 /* bytes of a key with the extras behind it */
	unsigned int max_frames; /* of a stack */
	struct flow *flows;
	size_t nr_flows;
	const struct layout *layout;		       /* of all aggregations: they run the same program */
	const struct member *ip, *pid, *comm, *cgroup; /* of the key */
	struct streamed_keys keys_shown;	       /* from the first sample on */

	struct waiting *waiting; /* a ring; NULL: no code is named */
	char *keys;
	size_t first, nr;
	__u64 now;		    /* CLOCK_MONOTONIC, ns: when this drain began */
	const struct stream *roomy; /* one of this drain that had room; NULL: not known */
	bool last; /* of the interval: no sample waits for another, and names have the interval's time */
	unsigned int named; /* of the samples that share a limit, and of others before */

	/* Codes by their numbers, as long as none is forgotten. */
	struct shown_code *codes;
	size_t nr_codes;

	struct fields fields;	       /* of the sample that is being written */
	struct compact registers_text; /* the same */

	__s64 realtime; /* CLOCK_REALTIME minus CLOCK_MONOTONIC, ns */
	struct thinning thinning;
	__u64 written, unwritten, lost;
	bool traces; /* `lost` counts the places where branches are missing */
};

struct streaming *streaming_new(struct activity *activity, const char *shows)
{
	struct streaming *streaming = xcalloc(1, sizeof(*streaming));

	streaming->activity = activity;
	streaming->thinning.on = activity->options->adaptive;
	streaming->address = list_has(shows, "addr");
	streaming->latency = list_has(shows, "latency");
	streaming->period = list_has(shows, "period");
	streaming->source = list_has(shows, "source");
	streaming->container = list_has(shows, "container");
	streaming->physical = list_has(shows, "phys");
	streaming->registers = list_has(shows, "regs");
	streaming->stack = list_has(shows, "stack");
	streaming->branches = list_has(shows, "branches");
	return streaming;
}

/* Whether names of the instruction are asked for, and not only those of stacks and branches. */
static bool shows_code(const struct activity *activity)
{
	static const char *const names[] = {"symbol", "line", "module", "place"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (keys_asked(&activity->keys, names[i]))
			return true;
	return false;
}

static void begin_waiting(struct streaming *streaming)
{
	const struct layout *layout = streaming->layout;

	streaming->ip = layout_key_named(layout, "ip");
	streaming->pid = layout_key_named(layout, "pid");
	streaming->comm = layout_key_of_type(layout, "comm_t");
	streaming->cgroup = layout_key_named(layout, "cgroup");
	if (!streaming->activity->keys.detail)
		return;
	streaming->code = shows_code(streaming->activity);
	streaming->waiting = xcalloc(WAITING_MOST, sizeof(*streaming->waiting));
	streaming->keys = xcalloc(WAITING_MOST, streaming->tail);
}

/* The extras of an event's samples. A stack has as many frames as the event asks for, in all events. */
static void plan_extras(struct streaming *streaming, const struct event *event, size_t key_size)
{
	struct ring_extras *extras = &streaming->extras;
	unsigned int depth = host_branches(&streaming->activity->session->host);

	streaming->max_frames = event->attr.sample_max_stack;
	*extras = (struct ring_extras){0};
	if (streaming->registers)
		extras->bytes[RING_EXTRA_REGISTERS] = sizeof(struct ring_registers);
	if (streaming->stack)
		extras->bytes[RING_EXTRA_STACK] = offsetof(struct ring_stack, frames[streaming->max_frames]);
	if (streaming->branches)
		extras->bytes[RING_EXTRA_BRANCHES] = offsetof(struct ring_branches, list[depth]);
	streaming->tail = rings_tail(key_size, extras);
}

void streaming_add(struct streaming *streaming, const struct event *event, struct aggregation *aggregation,
		   const struct ring_share *share)
{
	struct flow *flow;

	if (!streaming->source)
		aggregation_conceal(aggregation, "source");
	plan_extras(streaming, event, aggregation_layout(aggregation)->key_size);
	aggregation_stream(aggregation, &streaming->extras, share);
	*xappend(streaming->flows, streaming->nr_flows) =
		(struct flow){.event = event,
			      .name = value_text(event->name, sizeof(event->name)),
			      .aggregation = aggregation};
	flow = &streaming->flows[streaming->nr_flows - 1];
	flow->text = json_string_value(flow->name);
	flow->length = json_string_length(flow->name);
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
	for (size_t i = 0; i < streaming->nr_codes; i++) {
		json_decref(streaming->codes[i].value);
		free(streaming->codes[i].text.text);
	}
	free(streaming->codes);
	streaming->codes = NULL;
	streaming->nr_codes = 0;
	fields_begin(&streaming->fields); /* a code that it has may be gone */
}

void streaming_release(struct streaming *streaming)
{
	if (!streaming)
		return;
	forget_codes(streaming);
	for (size_t i = 0; i < streaming->nr_flows; i++)
		json_decref(streaming->flows[i].name);
	free(streaming->flows);
	free(streaming->registers_text.text);
	free(streaming->waiting);
	free(streaming->keys);
	free(streaming);
}

/* --- records ---------------------------------------------------------------------------------- */

static void add_time(const struct streaming *streaming, struct fields *fields, const char *name,
		     __u64 monotonic)
{
	fields_time(fields, name, monotonic + streaming->realtime);
}

static const struct code *code_at(const struct streaming *streaming, __u32 number)
{
	return codes_at(reader_codes_now(streaming->activity->reader), number);
}

static struct shown_code *shown_code(struct streaming *streaming, __u32 number)
{
	size_t before = streaming->nr_codes;
	struct shown_code *code;

	if (number >= before) {
		streaming->codes =
			xfit(streaming->codes, number + 1, &streaming->nr_codes, sizeof(*streaming->codes));
		memset(streaming->codes + before, 0,
		       (streaming->nr_codes - before) * sizeof(*streaming->codes));
	}
	code = &streaming->codes[number];
	if (!code->value)
		code->value = code_value(code_at(streaming, number));
	return code;
}

static json_t *code_of(struct streaming *streaming, __u32 number)
{
	return json_incref(shown_code(streaming, number)->value);
}

/* Adds the code of the sample itself, which is most of its text. The text is kept if the code comes again: to
 * keep one that doesn't costs as much as it would save. */
static void add_own_code(struct streaming *streaming, struct fields *fields, __u32 number)
{
	struct shown_code *code = shown_code(streaming, number);

	if (code->again && !code->text.used)
		compact_add_value(&code->text, code->value);
	code->again = true;
	fields_known(fields, "code", code->value, code->text.text, code->text.used);
}

static void add_owner(const struct streaming *streaming, struct fields *fields, const void *key)
{
	json_t *cgroup = member_value(&streaming->activity->session->host, streaming->cgroup, key);

	owner_add(fields, json_string_value(cgroup));
	json_decref(cgroup);
}

/* The clocks' difference changes when the system's clock is set or slewed. Smaller changes are those of
 * reading them, and would put samples out of order. */
#define CLOCK_SET_NS 1000000LL

/* So many samples share a look at the clocks. A drain may write millions of them, and the clock be set
 * meanwhile. */
#define CLOCK_SEEN_AT 32

static void see_clock(struct streaming *streaming)
{
	struct clock_lead now = clock_lead(CLOCK_MONOTONIC);

	if (llabs(now.ns - streaming->realtime) > CLOCK_SET_NS + now.within)
		streaming->realtime = now.ns;
}

/* Whether there is room for a sample or branch in the queues, perhaps once what waits there has been written.
 * `every`: see struct fields. */
static bool find_room(struct streaming *streaming, const char *type, unsigned int every, int *err)
{
	const struct activity *activity = streaming->activity;
	struct session *session = activity->session;

	streaming->roomy = session_roomy(session, activity->name);
	if (streaming->roomy || session_has_room(session, activity->name))
		return true;
	*err = session_flush(session);
	return !*err && session_takes_single(session, type, activity->name, every);
}

static inline bool has_room(struct streaming *streaming, const char *type, unsigned int every, int *err)
{
	const struct stream *stream = streaming->roomy;

	if (stream && !stream->sink.error && stream_has_room(stream))
		return true;
	return find_room(streaming, type, every, err);
}

static const void *extra_of(const struct streaming *streaming, const void *key, enum ring_extra extra)
{
	return (const char *)key + rings_extra_at(streaming->layout->key_size, &streaming->extras, extra);
}

/* In the order of struct pt_regs. NULL: not shown. */
static const char *const register_names[RING_REGISTERS] = {
	"r15", "r14", "r13", "r12", "bp", "bx", "r11", "r10",	"r9", "r8", "ax",
	"cx",  "dx",  "si",  "di",  NULL, "ip", "cs",  "flags", "sp", "ss",
};

static void add_registers(struct streaming *streaming, struct fields *fields, const void *key)
{
	const struct ring_registers *registers = extra_of(streaming, key, RING_EXTRA_REGISTERS);
	struct compact *text = &streaming->registers_text;
	struct fields all;

	fields_begin(&all);
	for (size_t i = 0; i < RING_REGISTERS; i++)
		if (register_names[i])
			fields_hex(&all, register_names[i], registers->words[i]);
	text->used = 0;
	compact_add_fields(text, &all);
	compact_close(text, 0);
	fields_raw(fields, "registers", text->text, text->used);
}

/* The frames of a sample's stack. Returns how many. */
static unsigned int stack_of(const struct streaming *streaming, const void *key, struct stack *stack)
{
	const struct ring_stack *copied = extra_of(streaming, key, RING_EXTRA_STACK);

	*stack = (struct stack){0};
	if (copied->id < STACK_FIRST)
		return 0;
	*stack = stack_from((const void *)&copied->hash, streaming->max_frames);
	return stack->kernel_frames + stack->user_frames;
}

static unsigned int branches_of(const struct streaming *streaming, const void *key,
				const struct branch **list)
{
	const struct ring_branches *branches = extra_of(streaming, key, RING_EXTRA_BRANCHES);

	*list = branches->list;
	return branches->bytes / sizeof(**list);
}

/* The numbers of a sample's codes: its instruction's, its stack's and its branches', one behind the other. */
#define CODES_OF_SAMPLE (1 + STACK_FRAMES + 2 * BRANCHES_MOST)

/* A place that is a return address is marked, so that its name can be looked up later. */
static json_t *frame_of(struct streaming *streaming, const struct stack *stack, unsigned int i, __u32 number)
{
	json_t *code = code_of(streaming, number), *frame;

	if (!stack_frame_returns(stack, i) || !code_tells_address(code_at(streaming, number)))
		return code;
	frame = json_copy(code);
	json_object_set_new(frame, "return", json_true());
	json_decref(code);
	return frame;
}

static void add_stack(struct streaming *streaming, struct fields *fields, const void *key, const __u32 *codes)
{
	const struct ring_stack *copied = extra_of(streaming, key, RING_EXTRA_STACK);
	struct stack stack;
	unsigned int nr = stack_of(streaming, key, &stack);
	json_t *list = json_array();

	for (unsigned int i = 0; i < nr; i++)
		json_array_append_new(list, frame_of(streaming, &stack, i, codes[i]));
	fields_value(fields, "stack", list);
	if (copied->id < STACK_FIRST)
		fields_value(fields, "stack_lost", json_string(chains_lost(copied->id)));
	else if (stack.full_depth)
		fields_value(fields, "truncated", json_true());
	else if (stack.end > STACK_CUT)
		fields_value(fields, "incomplete", json_string(chains_incomplete(stack.end)));
}

static void add_branches(struct streaming *streaming, struct fields *fields, const void *key,
			 const __u32 *codes)
{
	const struct branch *branches;
	unsigned int nr = branches_of(streaming, key, &branches);
	json_t *list = json_array();

	for (unsigned int i = 0; i < nr; i++)
		json_array_append_new(list,
				      json_pack("{s:o, s:o, s:b}", "from", code_of(streaming, codes[2 * i]),
						"to", code_of(streaming, codes[2 * i + 1]), "mispredicted",
						(int)(branches[i].flags & BRANCH_MISPREDICTED)));
	fields_value(fields, "branches", list);
}

static void add_codes(struct streaming *streaming, struct fields *fields, const void *key, const __u32 *codes)
{
	struct stack stack;

	if (streaming->code)
		add_own_code(streaming, fields, *codes++);
	if (streaming->stack) {
		add_stack(streaming, fields, key, codes);
		codes += stack_of(streaming, key, &stack);
	}
	if (streaming->branches)
		add_branches(streaming, fields, key, codes);
}

/* What was written of so many samples is given to the outputs at once, while it is in the cache: some 200 KB.
 * The buffer of all that a busy machine samples between two readings would be new memory each time. */
#define FLUSHED_AT 512

/* One event has no other before it in the line. */
static void add_event(const struct streaming *streaming, struct fields *fields, const struct flow *flow)
{
	if (streaming->nr_flows > 1)
		activity_add_event(fields, flow->event, flow->name);
	else
		fields_constant(fields, "event", flow->text, flow->length);
}

/* `codes`: numbers of the sample's; NULL: none is shown. */
static int write_sample(struct streaming *streaming, const struct flow *flow, const struct streamed *sample,
			unsigned int every, const __u32 *codes)
{
	const struct host *host = &streaming->activity->session->host;
	struct fields *fields = &streaming->fields;
	int err = 0;

	fields_again(fields);
	fields->every = every;
	if (!has_room(streaming, "sample", every, &err)) {
		streaming->unwritten++;
		return err;
	}
	if (!(streaming->written % CLOCK_SEEN_AT))
		see_clock(streaming);
	add_event(streaming, fields, flow);
	add_time(streaming, fields, "sample_time", sample->time);
	if (every > 1)
		fields_number(fields, "every", every);
	if (streaming->address)
		fields_hex(fields, "address", sample->address);
	if (streaming->physical)
		fields_hex(fields, "physical_address", sample->physical);
	if (streaming->latency && sample->latency)
		fields_number(fields, "latency", sample->latency);
	if (streaming->period)
		fields_number(fields, "period", sample->period);
	if (!streaming->written)
		streaming->keys_shown = streamed_keys(streaming->layout);
	add_streamed(fields, host, &streaming->keys_shown, sample->key);
	if (streaming->container)
		add_owner(streaming, fields, sample->key);
	if (streaming->registers)
		add_registers(streaming, fields, sample->key);
	if (codes)
		add_codes(streaming, fields, sample->key, codes);
	fields_shape(fields);
	err = activity_write_fields(streaming->activity, "sample", fields);
	return err || ++streaming->written % FLUSHED_AT ? err : session_flush(streaming->activity->session);
}

static int write_loss(struct streaming *streaming, struct flow *flow)
{
	struct ring_loss loss = flow->loss;
	struct fields fields;

	fields_begin(&fields);
	flow->loss = (struct ring_loss){0};
	streaming->lost += loss.samples;
	activity_add_event(&fields, flow->event, flow->name);
	fields_text(&fields, "cause", "ring_full", strlen("ring_full"));
	if (loss.since)
		add_time(streaming, &fields, "since", loss.since);
	add_time(streaming, &fields, "until", loss.until);
	fields_number(&fields, "missing", loss.samples);
	/* Where an output misses this record, its gap tells what the record would have told. */
	fields.every = loss.samples < ~0U ? loss.samples + 1 : ~0U;
	return activity_write_fields(streaming->activity, "lost", &fields);
}

/* --- names ------------------------------------------------------------------------------------ */

/* The codes of a sample that is to be named. */
struct sample_names {
	struct codes *codes;
	bool may_wait; /* for a later drain, if there is no time now */
	pid_t pid;
	const char *comm;
	__u32 *numbers; /* where the next one's is to be put */
};

/* Returns false if the code has no name yet and may wait for it. */
static bool name_code(const struct streaming *streaming, struct sample_names *names, unsigned int more,
		      pid_t pid, __u64 address)
{
	unsigned int detail = streaming->activity->keys.detail | more;

	if (names->may_wait)
		return codes_try(names->codes, detail, pid, names->comm, address, 1, names->numbers++);
	*names->numbers++ = codes_number(names->codes, detail, pid, names->comm, address, 1);
	return true;
}

static bool name_stack(const struct streaming *streaming, struct sample_names *names, const void *key)
{
	struct stack stack;
	unsigned int nr = stack_of(streaming, key, &stack);

	for (unsigned int i = 0; i < nr; i++)
		if (!name_code(streaming, names, stack_frame_returns(&stack, i) ? CODE_RETURN : 0, stack.pid,
			       FRAME_ADDRESS(stack.frames[i])))
			return false;
	return true;
}

static bool name_branches(const struct streaming *streaming, struct sample_names *names, const void *key)
{
	const struct branch *branches;
	unsigned int nr = branches_of(streaming, key, &branches);

	for (unsigned int i = 0; i < nr; i++)
		if (!name_code(streaming, names, 0, names->pid, branches[i].from) ||
		    !name_code(streaming, names, 0, names->pid, branches[i].to))
			return false;
	return true;
}

/* So many samples share a limit: to read the clock would take as long as naming one. */
#define NAMED_AT_ONCE 64

/* Limits how long lookups may take, from now on. */
static void limit_lookups(const struct streaming *streaming)
{
	struct reader *reader = streaming->activity->reader;

	if (streaming->last)
		reader_codes(reader);
	else
		reader_codes_early(reader, clock_ns(CLOCK_MONOTONIC) + LOOKUP_NS);
}

static const char *comm_of(const struct streaming *streaming, const void *key)
{
	const char *comm = streaming->comm ? (const char *)key + streaming->comm->offset : NULL;

	return comm && comm[0] ? comm : NULL;
}

/* Names the codes of a sample; returns false as name_code(). */
static bool name_sample(const struct streaming *streaming, const struct streamed *sample, bool may_wait,
			__u32 *numbers)
{
	const void *key = sample->key;
	struct sample_names names = {
		.codes = reader_codes_now(streaming->activity->reader),
		.may_wait = may_wait,
		.pid = member_number(streaming->pid, key),
		.comm = comm_of(streaming, key),
		.numbers = numbers,
	};

	codes_seen(names.codes, sample->time);
	if (streaming->code && !name_code(streaming, &names, 0, names.pid, member_number(streaming->ip, key)))
		return false;
	if (streaming->stack && !name_stack(streaming, &names, key))
		return false;
	return !streaming->branches || name_branches(streaming, &names, key);
}

static void *key_at(const struct streaming *streaming, size_t i)
{
	return streaming->keys + i * streaming->tail;
}

static void keep_waiting(struct streaming *streaming, const struct waiting *one)
{
	size_t at = (streaming->first + streaming->nr++) % WAITING_MOST;
	struct waiting *waiting = &streaming->waiting[at];

	*waiting = *one;
	waiting->sample.key = memcpy(key_at(streaming, at), one->sample.key, streaming->tail);
}

/* Names and writes a sample. Sets whether it waits instead. */
static int write_named(struct streaming *streaming, const struct waiting *one, bool may_wait, bool *waits)
{
	bool late = streaming->last || one->sample.time + STREAM_WAIT_NS < streaming->now;
	__u32 numbers[CODES_OF_SAMPLE];

	if (!(streaming->named++ % NAMED_AT_ONCE))
		limit_lookups(streaming);
	*waits = !name_sample(streaming, &one->sample, may_wait && !late, numbers);
	return *waits ? 0
		      : write_sample(streaming, &streaming->flows[one->flow], &one->sample, one->every,
				     numbers);
}

static int write_waiting(struct streaming *streaming, bool may_wait)
{
	bool waits = false;
	int err = 0;

	streaming->named = 0;
	while (streaming->nr && !err) {
		err = write_named(streaming, &streaming->waiting[streaming->first], may_wait, &waits);
		if (waits)
			break;
		streaming->first = (streaming->first + 1) % WAITING_MOST;
		streaming->nr--;
	}
	return err;
}

/* Writes a sample, or keeps it if it waits for its name, or others do. */
static int write_or_keep(struct streaming *streaming, const struct waiting *one)
{
	bool waits = true;
	int err = 0;

	if (!streaming->nr)
		err = write_named(streaming, one, true, &waits);
	if (!waits)
		return err;
	keep_waiting(streaming, one);
	return streaming->nr == WAITING_MOST ? write_waiting(streaming, false) : 0;
}

/* What has ended before the oldest sample that waits is needed no more. */
static void forget_ended(struct streaming *streaming, __u64 before)
{
	struct codes *codes = reader_codes_now(streaming->activity->reader);
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
static struct flow *oldest_flow(struct streaming *streaming, __u64 before)
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

static int take_sample(struct streaming *streaming, struct flow *flow)
{
	unsigned int every;
	int err = 0;

	if (flow->loss.samples) {
		err = streaming->waiting ? write_waiting(streaming, false) : 0;
		err = err ? err : write_loss(streaming, flow);
	}
	every = err ? 0 : thinning_take(&streaming->thinning, &flow->row);
	if (!every)
		return err;
	if (!streaming->waiting)
		return write_sample(streaming, flow, &flow->next, every, NULL);
	return write_or_keep(streaming, &(struct waiting){flow - streaming->flows, every, flow->next});
}

static void adapt_thinning(struct streaming *streaming)
{
	const struct activity *activity = streaming->activity;
	bool behind = false;

	for (size_t i = 0; i < streaming->nr_flows; i++)
		behind = behind || aggregation_is_behind(streaming->flows[i].aggregation);
	thinning_adapt(&streaming->thinning, behind,
		       session_filled(activity->session, activity->name, THINNING_LEVELS), streaming->now);
}

int streaming_drain(struct streaming *streaming, __u64 before, bool all)
{
	struct flow *flow;
	int err = 0;

	streaming->now = clock_ns(CLOCK_MONOTONIC);
	streaming->roomy = NULL;
	streaming->last = all;
	streaming->named = 0;
	see_clock(streaming);
	if (streaming->thinning.on)
		adapt_thinning(streaming);
	if (streaming->waiting)
		reader_take(streaming->activity->reader, all);
	while (!err && (flow = oldest_flow(streaming, before))) {
		err = take_sample(streaming, flow);
		flow->has_next = false;
	}
	if (!streaming->waiting || err)
		return err;
	err = write_waiting(streaming, true);
	forget_ended(streaming, before);
	return err;
}

/* --- traces ----------------------------------------------------------------------------------- */

static json_t *place_of(struct streaming *streaming, pid_t pid, __u64 address)
{
	struct codes *codes = reader_codes(streaming->activity->reader);

	codes_seen(codes, 0);
	return code_of(streaming, codes_number(codes, CODE_PLACE, pid, NULL, address, 1));
}

static int write_branch(struct streaming *streaming, const struct traced *traced,
			const struct trace_record *record, __u64 number)
{
	struct fields fields;
	int err = 0;

	fields_begin(&fields);
	if (!has_room(streaming, "traced", 1, &err)) {
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
	struct fields fields;

	fields_begin(&fields);
	streaming->lost++;
	activity_add_event(&fields, streaming->flows->event, streaming->flows->name);
	fields_text(&fields, "cause", traced->cause, strlen(traced->cause));
	add_time(streaming, &fields, "until", clock_ns(CLOCK_MONOTONIC));
	fields_number(&fields, "pid", traced->pid);
	fields_number(&fields, "tid", traced->tid);
	fields_number(&fields, "number", number);
	return activity_write_fields(streaming->activity, "lost", &fields);
}

int streaming_branches(struct streaming *streaming, const struct traced *traced, __u64 first)
{
	int err = 0;

	see_clock(streaming);
	streaming->roomy = NULL;
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
	if (streaming->thinning.on)
		json_object_set_new(value, "left_out", json_integer(streaming->thinning.left_out));
	return value;
}
