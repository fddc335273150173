// SPDX-License-Identifier: GPL-2.0-only
/*
 * The processed format: docs-developer/processed-profile-format.md, CHANGELOG-formats.md and src/types of
 * firefox-devtools/profiler. The version is one that its changelog describes; the viewer upgrades it.
 */
#include "output/firefox_profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/interned.h"
#include "base/memory.h"
#include "output/member.h"
#include "output/text.h"

#define PROCESSED_VERSION 48
#define GECKO_VERSION	  29 /* the format of Firefox itself that this version was made from */
#define LIBRARY_TYPE	  1  /* of a resource */
#define MARKER_INSTANT	  0  /* phases of markers */
#define MARKER_INTERVAL	  1

#define ROWS_MOST    (1u << 17)
#define NODES_MOST   (1u << 17)
#define REMARKS_MOST 16

/* There is no end of processes that come and go, and each thread takes some 12 KiB. */
#define THREADS_MOST 1024

/* What stands for stacks and threads that had no room. */
#define NO_ROOM "[others]"

/* The thread that counters and markers belong to, since their records are of no single one. */
#define COMMON_THREAD "counts and loads"

enum { CATEGORY_OTHER, CATEGORY_USER, CATEGORY_KERNEL };

struct fox_span {
	__u64 since_ns, until_ns;
};

/* What values are: those of loads are all used, samples and counters have the first one. */
enum { ROW_WEIGHT, ROW_SAMPLES, ROW_LATENCY, ROW_SUMS, ROW_LONGEST = ROW_SUMS, ROW_VALUES };

struct fox_row {
	__u32 span;
	__u32 stack; /* number of its node plus 1; 0: it has none */
	double values[ROW_VALUES];
};

struct fox_rows {
	struct fox_row *list;
	size_t nr, room;
};

struct fox_frame {
	__u32 function, line; /* line 0: not known */
};

struct fox_node {
	__u32 parent; /* its number plus 1; 0: none */
	__u32 frame;
};

/* A thread that is being made: tables of few rows as objects of columns. */
struct fox_thread {
	char *event, *label, *name;
	json_int_t pid, tid;
	bool clock;
	json_t *strings, *known; /* {kind and key: index}, of strings, functions and resources */
	json_t *functions, *resources, *categories; /* the last: of each function */
	struct interned frames, nodes;
	struct fox_rows samples;
};

/* A counter, or the loads of a source. */
struct fox_track {
	char *key, *name, *description;
	struct fox_rows rows;
};

struct fox_tracks {
	struct fox_track *list;
	size_t nr;
};

struct fox {
	struct fox_span *spans;
	size_t nr_spans, spans_room;
	size_t rows, rows_most; /* of all lists; how many are let in until spans are joined */
	size_t nodes;
	__u32 span; /* that was chosen */
	struct fox_thread *threads;
	size_t nr;
	json_t *known_threads; /* {event and name: index} */
	size_t thread;	       /* of the sample that is being made */
	__u32 stack;	       /* of it, so far: see struct fox_row */
	bool no_room;	       /* its stack has none */
	struct fox_tracks counters, sources;
	json_t *libs, *known_libs, *remarks, *events;
	size_t more_remarks;
};

struct fox *fox_new(void)
{
	struct fox *fox = xcalloc(1, sizeof(*fox));

	fox->rows_most = ROWS_MOST;
	fox->libs = json_array();
	fox->known_libs = json_object();
	fox->known_threads = json_object();
	fox->remarks = json_array();
	fox->events = json_array();
	return fox;
}

static void release_thread(struct fox_thread *thread)
{
	free(thread->event);
	free(thread->label);
	free(thread->name);
	free(thread->samples.list);
	json_decref(thread->strings);
	json_decref(thread->known);
	json_decref(thread->functions);
	json_decref(thread->resources);
	json_decref(thread->categories);
	interned_release(&thread->frames);
	interned_release(&thread->nodes);
}

static void release_tracks(struct fox_tracks *tracks)
{
	for (size_t i = 0; i < tracks->nr; i++) {
		free(tracks->list[i].key);
		free(tracks->list[i].name);
		free(tracks->list[i].description);
		free(tracks->list[i].rows.list);
	}
	free(tracks->list);
}

void fox_release(struct fox *fox)
{
	for (size_t i = 0; i < fox->nr; i++)
		release_thread(&fox->threads[i]);
	release_tracks(&fox->counters);
	release_tracks(&fox->sources);
	free(fox->threads);
	free(fox->spans);
	json_decref(fox->libs);
	json_decref(fox->known_libs);
	json_decref(fox->known_threads);
	json_decref(fox->remarks);
	json_decref(fox->events);
	free(fox);
}

bool fox_is_empty(const struct fox *fox)
{
	return !fox->nr_spans;
}

/* --- rows over time --------------------------------------------------------------------------- */

static int by_span(const void *a, const void *b)
{
	const struct fox_row *x = a, *y = b;

	return x->span != y->span    ? (x->span < y->span ? -1 : 1)
	       : x->stack < y->stack ? -1
				     : x->stack > y->stack;
}

/* Sums up the rows of each two spans. Returns how many are left. */
static size_t join_rows(struct fox_rows *rows)
{
	size_t left = 0;

	for (size_t i = 0; i < rows->nr; i++)
		rows->list[i].span /= 2;
	if (rows->nr)
		qsort(rows->list, rows->nr, sizeof(*rows->list), by_span);
	for (size_t i = 0; i < rows->nr; i++) {
		struct fox_row *row = &rows->list[i], *before = left ? &rows->list[left - 1] : NULL;

		if (!before || by_span(before, row)) {
			rows->list[left++] = *row;
			continue;
		}
		for (int v = 0; v < ROW_SUMS; v++)
			before->values[v] += row->values[v];
		before->values[ROW_LONGEST] = fmax(before->values[ROW_LONGEST], row->values[ROW_LONGEST]);
	}
	return rows->nr = left;
}

static size_t join_tracks(struct fox_tracks *tracks)
{
	size_t rows = 0;

	for (size_t i = 0; i < tracks->nr; i++)
		rows += join_rows(&tracks->list[i].rows);
	return rows;
}

static void join_spans(struct fox *fox)
{
	size_t nr = (fox->nr_spans + 1) / 2;

	for (size_t i = 0; i < nr; i++) {
		struct fox_span *one = &fox->spans[2 * i], *other = 2 * i + 1 < fox->nr_spans ? one + 1 : one;

		fox->spans[i] =
			(struct fox_span){one->since_ns < other->since_ns ? one->since_ns : other->since_ns,
					  one->until_ns > other->until_ns ? one->until_ns : other->until_ns};
	}
	fox->nr_spans = nr;
	fox->rows = join_tracks(&fox->counters) + join_tracks(&fox->sources);
	for (size_t i = 0; i < fox->nr; i++)
		fox->rows += join_rows(&fox->threads[i].samples);
}

static void make_room(struct fox *fox)
{
	if (fox->rows <= fox->rows_most)
		return;
	while (fox->rows > ROWS_MOST / 2 && fox->nr_spans > 1)
		join_spans(fox);
	fox->rows_most = 2 * fox->rows > ROWS_MOST ? 2 * fox->rows : ROWS_MOST;
}

/* Activities of the same interval take turns, so equal spans are near each other. */
#define SPANS_NEAR 16

void fox_choose_time(struct fox *fox, __u64 since_ns, __u64 until_ns)
{
	size_t i;

	make_room(fox);
	for (i = fox->nr_spans; i && fox->nr_spans - i < SPANS_NEAR; i--)
		if (fox->spans[i - 1].since_ns == since_ns && fox->spans[i - 1].until_ns == until_ns) {
			fox->span = i - 1;
			return;
		}
	if (fox->nr_spans == fox->spans_room) {
		fox->spans_room = 2 * fox->spans_room + 16;
		fox->spans = xrealloc(fox->spans, fox->spans_room * sizeof(*fox->spans));
	}
	fox->span = fox->nr_spans++;
	fox->spans[fox->span] = (struct fox_span){since_ns, until_ns};
}

static struct fox_row *add_row(struct fox *fox, struct fox_rows *rows, __u32 stack)
{
	if (rows->nr == rows->room) {
		rows->room = 2 * rows->room + 16;
		rows->list = xrealloc(rows->list, rows->room * sizeof(*rows->list));
	}
	fox->rows++;
	rows->list[rows->nr] = (struct fox_row){.span = fox->span, .stack = stack};
	return &rows->list[rows->nr++];
}

/* --- tables ----------------------------------------------------------------------------------- */

/* Appends a value to a column, and consumes it. */
static void fox_add(json_t *table, const char *column, json_t *value)
{
	json_t *list = json_object_get(table, column);

	if (!list) {
		list = json_array();
		json_object_set_new(table, column, list);
	}
	json_array_append_new(list, value);
}

static size_t fox_length(const json_t *table)
{
	json_t *column;
	const char *name;

	json_object_foreach((json_t *)table, name, column)
		return json_array_size(column);
	return 0;
}

/* The index of a key in a table: that of its row, or, if it is new, of the row that has to be added. */
static size_t fox_index(json_t *known, const char *kind, const char *key, size_t next, bool *added)
{
	json_t *name = json_sprintf("%s\n%s", kind, key);
	json_t *index = json_object_get(known, json_string_value(name));

	*added = !index;
	if (!index) {
		index = json_integer(next);
		json_object_set_new(known, json_string_value(name), index);
	}
	json_decref(name);
	return json_integer_value(index);
}

static json_t *fox_string(struct fox_thread *thread, const char *text)
{
	bool added;
	size_t index = fox_index(thread->known, "string", text, json_array_size(thread->strings), &added);

	if (added)
		json_array_append_new(thread->strings, json_string(text));
	return json_integer(index);
}

static const char *fox_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static size_t fox_lib(struct fox *fox, const json_t *frame)
{
	const char *path = string(frame, "module"), *base = fox_base(path), *id = string(frame, "build_id");
	bool added;
	size_t index = fox_index(fox->known_libs, "lib", path, json_array_size(fox->libs), &added);

	if (added)
		json_array_append_new(fox->libs,
				      json_pack("{ss ss ss ss ss ss so}", "arch", "", "name", base, "path",
						path, "debugName", base, "debugPath", path, "breakpadId", "",
						"codeId", *id ? json_string(id) : json_null()));
	return index;
}

/* The file of a function's code; -1: it is not known. */
static json_int_t fox_resource(struct fox *fox, struct fox_thread *thread, const struct call *call)
{
	const char *module = call ? string(call->frame, "module") : "";
	json_t *table = thread->resources;
	size_t index;
	bool added;

	if (!*module)
		return -1;
	index = fox_index(thread->known, "resource", module, fox_length(table), &added);
	if (!added)
		return index;
	fox_add(table, "lib", json_integer(fox_lib(fox, call->frame)));
	fox_add(table, "name", fox_string(thread, fox_base(module)));
	fox_add(table, "host", json_null());
	fox_add(table, "type", json_integer(LIBRARY_TYPE));
	return index;
}

static int fox_category(const struct step *step)
{
	if (!step->call)
		return CATEGORY_OTHER;
	return calls_of_kernel(step->call->frame) ? CATEGORY_KERNEL : CATEGORY_USER;
}

static __u32 fox_function(struct fox *fox, struct fox_thread *thread, const struct step *step)
{
	const struct call *call = step->call;
	const char *module = call ? string(call->frame, "module") : "";
	json_t *key = json_sprintf("%s\n%s", step->name, module), *table = thread->functions;
	bool added;
	size_t index =
		fox_index(thread->known, "function", json_string_value(key), fox_length(table), &added);

	json_decref(key);
	if (!added)
		return index;
	fox_add(table, "name", fox_string(thread, step->name));
	fox_add(table, "isJS", json_false());
	fox_add(table, "relevantForJS", json_false());
	fox_add(table, "resource", json_integer(fox_resource(fox, thread, call)));
	fox_add(table, "fileName", call && call->file ? fox_string(thread, call->file) : json_null());
	fox_add(table, "lineNumber", json_null());
	fox_add(table, "columnNumber", json_null());
	json_array_append_new(thread->categories, json_integer(fox_category(step)));
	return index;
}

/* --- samples ---------------------------------------------------------------------------------- */

static size_t add_thread(struct fox *fox, const struct fox_owner *owner)
{
	struct fox_thread *thread;

	fox->threads = xrealloc(fox->threads, (fox->nr + 1) * sizeof(*thread));
	thread = &fox->threads[fox->nr++];
	*thread = (struct fox_thread){.event = xstrdup(owner->event),
				      .label = xstrdup(owner->label),
				      .name = xstrdup(owner->name),
				      .pid = owner->pid ?: (json_int_t)fox->nr,
				      .tid = owner->tid	  ? owner->tid
					     : owner->pid ? owner->pid
							  : (json_int_t)fox->nr,
				      .clock = owner->clock,
				      .strings = json_array(),
				      .known = json_object(),
				      .functions = json_object(),
				      .resources = json_object(),
				      .categories = json_array()};
	interned_init(&thread->frames, sizeof(struct fox_frame));
	interned_init(&thread->nodes, sizeof(struct fox_node));
	for (size_t i = 0; i < json_array_size(fox->events); i++)
		if (!strcmp(json_string_value(json_array_get(fox->events, i)), owner->event))
			return fox->nr - 1;
	json_array_append_new(fox->events, json_string(owner->event));
	return fox->nr - 1;
}

/* The thread of an owner. Beyond THREADS_MOST, those that are new share one. */
static size_t fox_thread_of(struct fox *fox, const struct fox_owner *owner)
{
	struct fox_owner others = {
		.event = owner->event, .label = owner->label, .name = NO_ROOM, .clock = owner->clock};
	json_t *key = json_sprintf("%s\n%s", owner->event, owner->name);
	const json_t *known = json_object_get(fox->known_threads, json_string_value(key));
	size_t index;

	if (known) {
		index = json_integer_value(known);
	} else if (fox->nr >= THREADS_MOST && strcmp(owner->name, NO_ROOM) != 0) {
		index = fox_thread_of(fox, &others);
	} else {
		index = add_thread(fox, owner);
		json_object_set_new(fox->known_threads, json_string_value(key), json_integer(index));
	}
	json_decref(key);
	return index;
}

void fox_begin_sample(struct fox *fox, const struct fox_owner *owner)
{
	fox->thread = fox_thread_of(fox, owner);
	fox->stack = 0;
	fox->no_room = false;
}

static void push_node(struct fox *fox, const struct step *step)
{
	struct fox_thread *thread = &fox->threads[fox->thread];
	struct fox_frame frame = {fox_function(fox, thread, step), step->call ? step->call->line : 0};
	struct fox_node node = {fox->stack, interned_number(&thread->frames, &frame)};
	size_t before = thread->nodes.nr;

	fox->stack = interned_number(&thread->nodes, &node) + 1;
	fox->nodes += thread->nodes.nr - before;
}

void fox_push(struct fox *fox, const struct step *step)
{
	fox->no_room |= fox->nodes >= NODES_MOST;
	if (!fox->no_room)
		push_node(fox, step);
}

void fox_end_sample(struct fox *fox, double weight)
{
	if (!weight)
		return;
	if (fox->no_room) {
		fox->stack = 0;
		push_node(fox, &(struct step){.name = NO_ROOM});
	}
	add_row(fox, &fox->threads[fox->thread].samples, fox->stack)->values[ROW_WEIGHT] = weight;
}

/* --- counters and loads ----------------------------------------------------------------------- */

static struct fox_track *track_of(struct fox_tracks *tracks, const char *key, const char *name,
				  const char *description)
{
	struct fox_track *track;

	for (size_t i = 0; i < tracks->nr; i++)
		if (!strcmp(tracks->list[i].key, key))
			return &tracks->list[i];
	tracks->list = xrealloc(tracks->list, (tracks->nr + 1) * sizeof(*track));
	track = &tracks->list[tracks->nr++];
	*track = (struct fox_track){
		.key = xstrdup(key), .name = xstrdup(name), .description = xstrdup(description)};
	return track;
}

void fox_count(struct fox *fox, const char *key, const char *name, const char *description, double value)
{
	struct fox_track *track = track_of(&fox->counters, key, name, description);

	add_row(fox, &track->rows, 0)->values[ROW_WEIGHT] = value;
}

void fox_loads(struct fox *fox, const char *source, double samples, double period, double latency_sum,
	       double latency_max)
{
	struct fox_row *row = add_row(fox, &track_of(&fox->sources, source, source, "")->rows, 0);

	row->values[ROW_WEIGHT] = period;
	row->values[ROW_SAMPLES] = samples;
	row->values[ROW_LATENCY] = latency_sum;
	row->values[ROW_LONGEST] = latency_max;
}

void fox_remark(struct fox *fox, const char *title, const char *text)
{
	json_t *remark = json_pack("{ss ss ss}", "label", title, "format", "string", "value", text), *other;
	size_t i;

	json_array_foreach(fox->remarks, i, other)
		if (json_equal(other, remark))
			break;
	if (i == json_array_size(fox->remarks) && i < REMARKS_MOST)
		json_array_append(fox->remarks, remark);
	else
		fox->more_remarks += i == json_array_size(fox->remarks);
	json_decref(remark);
}

/* --- the document ----------------------------------------------------------------------------- */

/* A table with its length. Columns that have no rows are there, too. */
static json_t *fox_whole(json_t *table, const char *const *columns)
{
	size_t length = fox_length(table);

	for (; *columns; columns++)
		if (!json_object_get(table, *columns))
			json_object_set_new(table, *columns, json_array());
	json_object_set_new(table, "length", json_integer(length));
	return table;
}

static __u64 began_ns(const struct fox *fox)
{
	__u64 began = ~0ULL;

	for (size_t i = 0; i < fox->nr_spans; i++)
		began = fox->spans[i].since_ns < began ? fox->spans[i].since_ns : began;
	return began;
}

/* A row at its time, in ms since the profile began, as all times in it are. */
struct fox_timed {
	const struct fox_row *row;
	double since, until;
};

static int by_time(const void *a, const void *b)
{
	const struct fox_timed *x = a, *y = b;

	if (x->since != y->since)
		return x->since < y->since ? -1 : 1;
	if (x->until != y->until)
		return x->until < y->until ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

/* The rows in the order of time. The caller frees the list. */
static struct fox_timed *timed(const struct fox *fox, const struct fox_rows *rows)
{
	struct fox_timed *list = xmalloc((rows->nr + 1) * sizeof(*list));
	__u64 began = began_ns(fox);

	for (size_t i = 0; i < rows->nr; i++) {
		const struct fox_span *span = &fox->spans[rows->list[i].span];

		list[i] = (struct fox_timed){&rows->list[i], (span->since_ns - began) / 1e6,
					     (span->until_ns - began) / 1e6};
	}
	qsort(list, rows->nr, sizeof(*list), by_time);
	return list;
}

static json_t *number_value(double number)
{
	return number == rint(number) && fabs(number) < 9e15 ? json_integer((json_int_t)number)
							     : json_real(number);
}

/* Of a span only the sums of equal stacks are known. So they are laid out over it one after the other, each
 * as long as what it stands for, and not in the order of time. */
static void lay_out(json_t *samples, const struct fox_timed *rows, size_t nr, bool clock, double *last)
{
	double whole = 0, before = 0, time;

	for (size_t i = 0; i < nr; i++)
		whole += rows[i].row->values[ROW_WEIGHT];
	for (size_t i = 0; i < nr; i++) {
		double weight = rows[i].row->values[ROW_WEIGHT];

		time = rows->since + (rows->until - rows->since) * before / whole;
		*last = fmax(*last, time); /* spans of several activities can overlap */
		fox_add(samples, "stack",
			rows[i].row->stack ? json_integer(rows[i].row->stack - 1) : json_null());
		fox_add(samples, "weight", clock ? json_real(weight / 1e6) : number_value(weight));
		fox_add(samples, "time", json_real(*last));
		before += weight;
	}
}

static json_t *fox_samples(const struct fox *fox, const struct fox_thread *thread)
{
	static const char *const columns[] = {"stack", "weight", "time", NULL};
	struct fox_timed *rows = timed(fox, &thread->samples);
	json_t *samples = json_object();
	double last = 0;

	for (size_t first = 0, end; first < thread->samples.nr; first = end) {
		for (end = first + 1;
		     end < thread->samples.nr && rows[end].row->span == rows[first].row->span;)
			end++;
		lay_out(samples, rows + first, end - first, thread->clock, &last);
	}
	free(rows);
	fox_whole(samples, columns);
	json_object_set_new(samples, "weightType", json_string(thread->clock ? "tracing-ms" : "samples"));
	return samples;
}

static json_t *fox_frames(const struct fox_thread *thread)
{
	static const char *const columns[] = {
		"func",		"address",	 "inlineDepth",	   "category", "subcategory", "line",
		"nativeSymbol", "innerWindowID", "implementation", "column",   NULL};
	json_t *table = json_object();

	for (size_t i = 0; i < thread->frames.nr; i++) {
		const struct fox_frame *frame = interned_at(&thread->frames, i);

		fox_add(table, "func", json_integer(frame->function));
		fox_add(table, "address", json_integer(-1));
		fox_add(table, "inlineDepth", json_integer(0));
		fox_add(table, "category", json_incref(json_array_get(thread->categories, frame->function)));
		fox_add(table, "subcategory", json_integer(0));
		fox_add(table, "line", frame->line ? json_integer(frame->line) : json_null());
		for (size_t c = 6; columns[c]; c++)
			fox_add(table, columns[c], json_null());
	}
	return fox_whole(table, columns);
}

static json_t *fox_stacks(const struct fox_thread *thread)
{
	static const char *const columns[] = {"frame", "prefix", "category", "subcategory", NULL};
	json_t *table = json_object();

	for (size_t i = 0; i < thread->nodes.nr; i++) {
		const struct fox_node *node = interned_at(&thread->nodes, i);
		const struct fox_frame *frame = interned_at(&thread->frames, node->frame);

		fox_add(table, "frame", json_integer(node->frame));
		fox_add(table, "prefix", node->parent ? json_integer(node->parent - 1) : json_null());
		fox_add(table, "category", json_incref(json_array_get(thread->categories, frame->function)));
		fox_add(table, "subcategory", json_integer(0));
	}
	return fox_whole(table, columns);
}

static json_t *fox_symbols(void)
{
	static const char *const columns[] = {"libIndex", "address", "name", "functionSize", NULL};

	return fox_whole(json_object(), columns);
}

/* The type of a source's markers, which has a schema and a track of its own. */
static json_t *load_type(const struct fox_track *source)
{
	return json_sprintf("loads: %s", source->name);
}

static void add_marker(json_t *table, struct fox_thread *thread, const struct fox_track *source,
		       const struct fox_timed *at)
{
	const double *values = at->row->values;
	bool moment = at->since == at->until;

	fox_add(table, "name", fox_string(thread, source->name));
	fox_add(table, "startTime", json_real(at->since));
	fox_add(table, "endTime", moment ? json_null() : json_real(at->until));
	fox_add(table, "phase", json_integer(moment ? MARKER_INSTANT : MARKER_INTERVAL));
	fox_add(table, "category", json_integer(CATEGORY_OTHER));
	fox_add(table, "data",
		json_pack("{so so so so so}", "type", load_type(source), "mean",
			  json_real(values[ROW_WEIGHT] ? values[ROW_LATENCY] / values[ROW_WEIGHT] : 0), "max",
			  number_value(values[ROW_LONGEST]), "samples", number_value(values[ROW_SAMPLES]),
			  "loads", number_value(values[ROW_WEIGHT])));
}

/* The loads of these sources as markers. */
static json_t *fox_markers(const struct fox *fox, struct fox_thread *thread, const struct fox_tracks *sources)
{
	static const char *const columns[] = {"data",  "name",	   "startTime", "endTime",
					      "phase", "category", NULL};
	json_t *table = json_object();

	for (size_t i = 0; i < sources->nr; i++) {
		struct fox_timed *rows = timed(fox, &sources->list[i].rows);

		for (size_t n = 0; n < sources->list[i].rows.nr; n++)
			add_marker(table, thread, &sources->list[i], &rows[n]);
		free(rows);
	}
	return fox_whole(table, columns);
}

static json_t *load_field(const char *key, const char *label, const char *format)
{
	return json_pack("{ss ss ss}", "key", key, "label", label, "format", format);
}

/* The schema of each source's markers. `graphs` make a track of their own of them. */
static json_t *fox_schemas(const struct fox *fox)
{
	json_t *schemas = json_array();

	for (size_t i = 0; i < fox->sources.nr; i++)
		json_array_append_new(
			schemas, json_pack("{so ss ss ss s[sss] s[oooo] s[{ss ss ss}]}", "name",
					   load_type(&fox->sources.list[i]), "tooltipLabel",
					   "{marker.name}: loads", "tableLabel",
					   "{marker.data.mean} cycles on average, {marker.data.max} at most",
					   "chartLabel", "{marker.data.mean} cycles", "display",
					   "marker-chart", "marker-table", "timeline-overview", "data",
					   load_field("mean", "Mean latency (core cycles)", "decimal"),
					   load_field("max", "Longest latency (core cycles)", "integer"),
					   load_field("samples", "Samples", "integer"),
					   load_field("loads", "Loads that they stand for", "integer"),
					   "graphs", "key", "mean", "type", "line", "color", "blue"));
	return schemas;
}

/* Whether the thread is the one that a viewer groups the others of its process below. */
static bool is_main(const struct fox *fox, const struct fox_thread *thread)
{
	const struct fox_thread *first = NULL;

	for (size_t i = 0; i < fox->nr; i++) {
		const struct fox_thread *other = &fox->threads[i];

		if (other->pid == thread->pid &&
		    (!first || (other->tid == other->pid && first->tid != first->pid)))
			first = other;
	}
	return first == thread;
}

static json_t *thread_name(const struct fox *fox, const struct fox_thread *thread)
{
	if (json_array_size(fox->events) < 2)
		return json_string(thread->name);
	return json_sprintf("%s (%s)", thread->name, thread->label);
}

/* A thread with these sources of loads. */
static json_t *thread_value(const struct fox *fox, struct fox_thread *thread, json_t *name, bool main,
			    const struct fox_tracks *sources)
{
	static const char *const functions[] = {"name",	    "isJS",	  "relevantForJS", "resource",
						"fileName", "lineNumber", "columnNumber",  NULL};
	static const char *const resources[] = {"lib", "name", "host", "type", NULL};
	json_t *markers = fox_markers(fox, thread, sources);

	return json_pack(
		"{ss sf sn sn so so so sb so so so so so so sO so so so}", "processType", "default",
		"processStartupTime", 0.0, "processShutdownTime", "unregisterTime", "registerTime",
		json_real(0), "pausedRanges", json_array(), "name", name, "isMainThread", main, "pid",
		json_sprintf("%lld", (long long)thread->pid), "tid", json_integer(thread->tid), "samples",
		fox_samples(fox, thread), "markers", markers, "stackTable", fox_stacks(thread), "frameTable",
		fox_frames(thread), "stringArray", thread->strings, "funcTable",
		fox_whole(json_deep_copy(thread->functions), functions), "resourceTable",
		fox_whole(json_deep_copy(thread->resources), resources), "nativeSymbols", fox_symbols());
}

static json_t *common_thread(const struct fox *fox)
{
	struct fox_thread thread = {.strings = json_array(),
				    .known = json_object(),
				    .functions = json_object(),
				    .resources = json_object(),
				    .categories = json_array()};
	json_t *value;

	interned_init(&thread.frames, sizeof(struct fox_frame));
	interned_init(&thread.nodes, sizeof(struct fox_node));
	value = thread_value(fox, &thread, json_string(COMMON_THREAD), true, &fox->sources);
	release_thread(&thread);
	return value;
}

/* Part of an interval: less than that between two intervals is the time that it takes to read a counter. */
#define COUNTER_GAP 0.01

/* A counter has at each time what was counted since the time before. */
static json_t *counter_value(const struct fox *fox, const struct fox_track *counter, size_t thread)
{
	static const char *const columns[] = {"time", "count", NULL};
	struct fox_timed *rows = timed(fox, &counter->rows);
	json_t *samples = json_object();
	double last = -INFINITY;

	for (size_t i = 0; i < counter->rows.nr; i++) {
		if (rows[i].since - last > COUNTER_GAP * (rows[i].until - rows[i].since)) {
			fox_add(samples, "time", json_real(rows[i].since));
			fox_add(samples, "count", json_integer(0));
		}
		last = fmax(last, rows[i].until);
		fox_add(samples, "time", json_real(last));
		fox_add(samples, "count", number_value(rows[i].row->values[ROW_WEIGHT]));
	}
	free(rows);
	return json_pack("{ss ss ss ss sI so}", "name", counter->name, "category", "counts", "description",
			 counter->description, "pid", "0", "mainThreadIndex", (json_int_t)thread, "samples",
			 fox_whole(samples, columns));
}

static json_t *fox_category_value(const char *name, const char *colour)
{
	return json_pack("{ss ss s[s]}", "name", name, "color", colour, "subcategories", "Other");
}

/* Sections of the panel about the profile. */
static json_t *fox_sections(const struct fox *fox)
{
	json_t *remarks = json_copy(fox->remarks);

	if (fox->more_remarks)
		json_array_append_new(remarks,
				      json_pack("{ss ss so}", "label", "more", "format", "string", "value",
						json_sprintf("%zu more remarks of this kind on other "
							     "intervals",
							     fox->more_remarks)));
	if (json_array_size(remarks))
		return json_pack("[{ss so}]", "label", "How far to trust it", "entries", remarks);
	json_decref(remarks);
	return json_array();
}

/* The events that the threads are of. */
static json_t *event_labels(const struct fox *fox)
{
	struct text labels = {0};
	json_t *value;

	for (size_t i = 0; i < fox->nr; i++) {
		bool told = false;

		for (size_t n = 0; n < i; n++)
			told |= !strcmp(fox->threads[n].label, fox->threads[i].label);
		if (!told)
			text_add(&labels, "%s%s", labels.used ? ", " : "", fox->threads[i].label);
	}
	value = json_string(labels.bytes ?: "");
	free(labels.bytes);
	return value;
}

static json_t *fox_meta(const struct fox *fox, const char *title, double interval_ms)
{
	json_t *meta = json_pack(
		"{sf sf si s[ooo] ss ss* ss si si si sb sb so so}", "interval", interval_ms, "startTime",
		began_ns(fox) / 1e6, "processType", 0, "categories", fox_category_value("Other", "grey"),
		fox_category_value("User", "yellow"), fox_category_value("Kernel", "orange"), "product",
		title, "importedFrom", "nhmtap", "platform", "Linux", "stackwalk", 1, "version",
		GECKO_VERSION, "preprocessedProfileVersion", PROCESSED_VERSION, "symbolicated", 1,
		"usesOnlyOneStackType", 1, "markerSchema", fox_schemas(fox), "extra", fox_sections(fox));

	json_object_set_new(meta, "arguments", event_labels(fox));
	json_object_set_new(meta, "doesNotUseFrameImplementation", json_true());
	return meta;
}

json_t *fox_value(const struct fox *fox, const char *title, double interval_ms)
{
	json_t *threads = json_array(), *counters = json_array();

	for (size_t i = 0; i < fox->nr; i++) {
		struct fox_thread *thread = &fox->threads[i];

		json_array_append_new(threads, thread_value(fox, thread, thread_name(fox, thread),
							    is_main(fox, thread), &(struct fox_tracks){0}));
	}
	for (size_t i = 0; i < fox->counters.nr; i++)
		json_array_append_new(counters,
				      counter_value(fox, &fox->counters.list[i], json_array_size(threads)));
	if (fox->counters.nr || fox->sources.nr || !fox->nr)
		json_array_append_new(threads, common_thread(fox));
	return json_pack("{so sO so so so}", "meta", fox_meta(fox, title, interval_ms), "libs", fox->libs,
			 "pages", json_array(), "counters", counters, "threads", threads);
}
