// SPDX-License-Identifier: GPL-2.0-only
#include "output/flamegraph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "base/interned.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/path.h"
#include "output/activities.h"
#include "output/calls.h"
#include "output/member.h"
#include "output/texts.h"
#include "record/record.h"

/* The kind of code of a node, as bits that the page's script reads. */
enum { OTHER = 0, USER = 1, KERNEL = 2, INLINED = 4, PLACE = 8, LATE = 16 };

/* The key of a node in an event's graph: a function is one node for each of its callers. */
struct node_key {
	__u32 parent; /* the parent's number; NOBODY for the root */
	__u32 name;   /* index in `texts` */
	__u64 kind;
};
#define NOBODY (~0U)

/* What samples weigh, and the variance of that, as they come by chance. */
struct weight {
	__u64 sum;
	double square;
};

struct node {
	__u32 code;		 /* index in `codes` */
	struct weight weight[2]; /* in the first stream and in the second */
};

/* What identifies the code of a node. */
struct drawn_key {
	__u32 name, place; /* indices in `texts` */
	__u64 kind;
};

struct graph {
	const struct measurement *measured;
	char unit[96];	      /* of the nodes' weights */
	struct interned keys; /* of the nodes, by number; a parent's number is the lower one */
	struct node *nodes;
	size_t room;
	__u64 lost[2];	    /* samples that are in no entry, for each stream */
	__u64 throttled[2]; /* how often the kernel paused the event */
	bool at_least;	    /* some of what occurred was not counted */
};

struct flamegraph {
	struct calls calls;
	struct activities activities;
	struct numbered_texts texts;
	struct interned codes;
	struct graph *graphs;
	size_t nr;
	int stream; /* the stream that is being read: 0 or 1 */
	bool reverse;
	double from_s, to_s; /* the wanted part of a stream, in seconds since its first interval began */
	double began_s[2];   /* when the first interval of each stream began, s since 1970; NAN: not known yet
			      */
	/* Of each stream: the comm of the program that was measured, and whether the run was all of it. */
	char program[2][16];
	bool whole[2];
	size_t left_out; /* number of intervals outside of the wanted part */
};

struct flamegraph *flamegraph_new(void)
{
	struct flamegraph *flamegraph = xcalloc(1, sizeof(*flamegraph));

	numbered_texts_init(&flamegraph->texts);
	activities_begin(&flamegraph->activities);
	flamegraph->to_s = INFINITY;
	flamegraph->began_s[0] = flamegraph->began_s[1] = NAN;
	interned_init(&flamegraph->codes, sizeof(struct drawn_key));
	return flamegraph;
}

void flamegraph_release(struct flamegraph *flamegraph)
{
	for (size_t i = 0; i < flamegraph->nr; i++) {
		interned_release(&flamegraph->graphs[i].keys);
		free(flamegraph->graphs[i].nodes);
	}
	free(flamegraph->graphs);
	calls_release(&flamegraph->calls);
	activities_release(&flamegraph->activities);
	numbered_texts_release(&flamegraph->texts);
	interned_release(&flamegraph->codes);
	free(flamegraph);
}

void flamegraph_reverse(struct flamegraph *flamegraph)
{
	flamegraph->reverse = true;
}

void flamegraph_part(struct flamegraph *flamegraph, double from_s, double to_s)
{
	flamegraph->from_s = from_s;
	flamegraph->to_s = to_s;
}

void flamegraph_second(struct flamegraph *flamegraph)
{
	flamegraph->stream = 1;
	activities_second(&flamegraph->activities);
	calls_release(&flamegraph->calls); /* frames are numbered anew in each run */
}

size_t flamegraph_left_out(const struct flamegraph *flamegraph)
{
	return flamegraph->left_out;
}

size_t flamegraph_events(const struct flamegraph *flamegraph)
{
	return flamegraph->nr;
}

/* --- taking in -------------------------------------------------------------------------------- */

static struct weight weight_of(const json_t *entry)
{
	json_int_t sum = calls_weight(entry), count = integer(entry, "count"),
		   samples = integer(entry, "samples");

	if (sum <= 0)
		return (struct weight){0};
	return (struct weight){sum, (double)sum * sum / (samples > 0 ? samples : count > 0 ? count : 1)};
}

static void add_weight(struct weight *to, struct weight more)
{
	to->sum += more.sum;
	to->square += more.square;
}

/* The number of the child of this name, which is created if it does not exist. */
static __u32 node_of(struct flamegraph *flamegraph, struct graph *graph, __u32 parent, const char *name,
		     const char *place, unsigned int kind)
{
	struct node_key key = {parent, text_number(&flamegraph->texts, name), kind};
	struct drawn_key code;
	size_t seen = graph->keys.nr;
	__u32 number = interned_number(&graph->keys, &key);

	graph->nodes = xfit(graph->nodes, graph->keys.nr, &graph->room, sizeof(*graph->nodes));
	if (number == seen) {
		code = (struct drawn_key){key.name, text_number(&flamegraph->texts, place), kind};
		graph->nodes[number] = (struct node){.code = interned_number(&flamegraph->codes, &code)};
	}
	return number;
}

static __u32 add_node(struct flamegraph *flamegraph, struct graph *graph, __u32 parent, const char *name,
		      const char *place, unsigned int kind, struct weight weight)
{
	__u32 number = node_of(flamegraph, graph, parent, name, place, kind);

	add_weight(&graph->nodes[number].weight[flamegraph->stream], weight);
	return number;
}

/* The unit of weights: periods count what the event counts, the kernel's clocks ns. */
static void set_unit(struct graph *graph, const json_t *record)
{
	const json_t *entry = json_array_get(json_object_get(record, "entries"), 0);
	const char *event = string(record, "event"), *unit = event;

	if (!json_object_get(entry, "period"))
		unit = json_object_get(entry, "count") ? "branches" : "samples";
	else if (!strncmp(event, "cpu-clock", 9) || !strncmp(event, "task-clock", 10))
		unit = "ns";
	snprintf(graph->unit, sizeof(graph->unit), "%s", unit);
}

/* The graph of the record's event. The command is part of its name, unless it is profile. */
static struct graph *graph_of(struct flamegraph *flamegraph, const json_t *record)
{
	const char *type = string(record, "type");
	bool others = strcmp(type, "profile");
	const struct measurement *measured;
	char number[24] = "", *name;
	struct graph *graph;

	if (integer(record, "nth"))
		snprintf(number, sizeof(number), " %lld", (long long)integer(record, "nth"));
	name = xasprintf("%s%s%s%s%s%s", string(record, "event"), others ? " (" : "", others ? type : "",
			 others ? ")" : "", strcmp(calls_kind(record), "range") ? "" : ", kind range",
			 number);
	measured = measurement_in(&flamegraph->activities, name, record);
	free(name);
	for (size_t i = 0; i < flamegraph->nr; i++)
		if (flamegraph->graphs[i].measured == measured)
			return &flamegraph->graphs[i];
	graph = xappend(flamegraph->graphs, flamegraph->nr);
	*graph = (struct graph){.measured = measured};
	set_unit(graph, record);
	interned_init(&graph->keys, sizeof(struct node_key));
	return graph;
}

#define BETWEEN " · " /* a file with code and its source */

/* "/usr/bin/true · main.c" */
static const char *place_of(const struct call *call, char *text, size_t size)
{
	const char *module = string(call->frame, "module");

	snprintf(text, size, "%s%s%s", module, *module && call->file ? BETWEEN : "",
		 call->file ? call->file : "");
	return text;
}

static __u32 add_frame(struct flamegraph *flamegraph, struct graph *graph, __u32 parent, const json_t *frame,
		       struct weight weight)
{
	unsigned int side = calls_of_kernel(frame) ? KERNEL : USER;
	char name[CALLS_NAME_MAX], place[2 * CALLS_NAME_MAX];

	for (size_t calls = calls_in(frame), i = 0; i < calls; i++) {
		struct call call = calls_at(frame, flamegraph->reverse ? i : calls - 1 - i);

		parent = add_node(flamegraph, graph, parent, calls_name(&call, name, sizeof(name)),
				  place_of(&call, place, sizeof(place)),
				  side | (call.inlined ? INLINED : 0) | (calls_is_place(&call) ? PLACE : 0),
				  weight);
	}
	return parent;
}

/* The owner of an entry. The program that the second stream measured takes the name of the first stream's, so
 * that two builds of one program with different names are compared. */
static const char *owner_of(const struct flamegraph *flamegraph, const json_t *entry, char *owner,
			    size_t size)
{
	calls_owner(entry, owner, size);
	if (flamegraph->stream && *flamegraph->program[0] && !strcmp(owner, flamegraph->program[1]))
		return flamegraph->program[0];
	return owner;
}

/* Adds the entry's functions below their owner, from the outermost to the innermost. With --reverse the
 * innermost function comes first, then its callers, and the owner comes last. */
static void take_entry(struct flamegraph *flamegraph, struct graph *graph, __u32 root, const json_t *entry)
{
	struct weight weight = weight_of(entry);
	const json_t *stack = json_object_get(entry, "stack");
	size_t frames = json_array_size(stack);
	const char *lost = string(entry, "stack_lost");
	char name[CALLS_NAME_MAX], words[64], text[2 * CALLS_NAME_MAX];
	const char *owner = owner_of(flamegraph, entry, name, sizeof(name));
	const char *end = calls_end(entry, text, sizeof(text));
	__u32 parent = root;

	snprintf(words, sizeof(words), "[stack lost: %.32s]", lost);
	if (!flamegraph->reverse)
		parent = add_node(flamegraph, graph, root, owner, "", OTHER, weight);
	else if (*lost)
		parent = add_node(flamegraph, graph, root, words, "", OTHER, weight);
	if (flamegraph->reverse && end)
		parent = add_node(flamegraph, graph, parent, end, "", OTHER, weight);
	for (size_t i = 0; i < frames; i++) {
		size_t at = flamegraph->reverse ? i : frames - 1 - i;

		parent = add_frame(
			flamegraph, graph, parent,
			calls_frame(&flamegraph->calls, json_integer_value(json_array_get(stack, at))),
			weight);
	}
	if (flamegraph->reverse)
		add_node(flamegraph, graph, parent, owner, "", OTHER, weight);
	else if (*lost)
		parent = add_node(flamegraph, graph, parent, words, "", OTHER, weight);
	if (!flamegraph->reverse && end)
		add_node(flamegraph, graph, parent, end, "", OTHER, weight);
}

static void take_profile(void *context, const json_t *record)
{
	struct flamegraph *flamegraph = context;
	struct graph *graph = graph_of(flamegraph, record);
	const json_t *rest = json_object_get(record, "rest"), *samples = json_object_get(record, "samples");
	json_t *entry, *count;
	const char *cause;
	struct weight sum = weight_of(rest);
	__u32 root;
	size_t i;

	json_array_foreach(json_object_get(record, "entries"), i, entry)
		add_weight(&sum, weight_of(entry));
	root = add_node(flamegraph, graph, NOBODY, "all", "", OTHER, sum);
	json_array_foreach(json_object_get(record, "entries"), i, entry)
		take_entry(flamegraph, graph, root, entry);
	if (rest)
		add_node(flamegraph, graph, root, "[others]", "", OTHER, weight_of(rest));
	json_object_foreach(json_object_get(samples, "lost"), cause, count)
		graph->lost[flamegraph->stream] += json_integer_value(count);
	graph->throttled[flamegraph->stream] += integer(samples, "throttled");
	graph->at_least |= json_is_true(json_object_get(samples, "at_least"));
}

/* Whether the interval begins within the wanted part of the time. */
static bool in_part(struct flamegraph *flamegraph, const json_t *record)
{
	double *began = &flamegraph->began_s[flamegraph->stream];
	__u64 began_ns = moment(record, "start_time");
	double at = began_ns ? began_ns / 1e9 : NAN;

	if (isnan(*began))
		*began = at;
	at -= *began;
	if (isnan(at) || (at >= flamegraph->from_s && at < flamegraph->to_s))
		return true;
	flamegraph->left_out++;
	return false;
}

static void take_start(struct flamegraph *flamegraph, const json_t *record)
{
	const char *program = measured_program(record);

	activities_start(&flamegraph->activities, record);
	flamegraph->whole[flamegraph->stream] = false;
	snprintf(flamegraph->program[flamegraph->stream], sizeof(flamegraph->program[0]), "%.15s",
		 program ? path_last(program) : "");
}

void flamegraph_take(struct flamegraph *flamegraph, const json_t *record)
{
	const char *type = string(record, "type");

	if (!strcmp(type, "start"))
		take_start(flamegraph, record);
	if (!strcmp(type, "end"))
		flamegraph->whole[flamegraph->stream] =
			json_object_get(record, "command") && !strcmp(string(record, "reason"), "exited");
	if (!strcmp(type, "frames"))
		calls_define(&flamegraph->calls, record);
	if (!list_has(COMMANDS_OF_STACKS, type) || !calls_lead_to(record) || !in_part(flamegraph, record))
		return;
	calls_each_part(record, take_profile, flamegraph);
}

/* Adds JSON that is safe within an HTML page: '<' is escaped, so that no name can close the element that
 * holds it. */
static void add_json(struct text *page, json_t *value)
{
	char *dumped = json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);

	for (const char *at = dumped; *at;) {
		size_t length = strcspn(at, "<");

		text_add(page, "%.*s", (int)length, at);
		at += length;
		if (*at) {
			text_add(page, "\\u003c");
			at++;
		}
	}
	free(dumped);
	json_decref(value);
}

/* --- names that were late --------------------------------------------------------------------- */

/* The name of the file that a node's code is in. */
static const char *file_of(const struct flamegraph *flamegraph, const struct drawn_key *code, char *file,
			   size_t size)
{
	const char *place = text_of_number(&flamegraph->texts, code->place), *end = strstr(place, BETWEEN);

	snprintf(file, size, "%.*s", (int)(end ? end - place : (ptrdiff_t)strlen(place)), place);
	return path_last(file);
}

/* {file: true} of those in which functions have names, in either stream. */
static json_t *files_with_names(const struct flamegraph *flamegraph)
{
	char file[2 * CALLS_NAME_MAX];
	json_t *named = json_object();

	for (size_t i = 0; i < flamegraph->codes.nr; i++) {
		const struct drawn_key *code = interned_at(&flamegraph->codes, i);

		if (!(code->kind & PLACE))
			json_object_set_new(named, file_of(flamegraph, code, file, sizeof(file)),
					    json_true());
	}
	return named;
}

/* The node of a place in a file with names: one for all of the file's that have the same caller. */
static __u32 late_node(struct flamegraph *flamegraph, struct graph *graph, __u32 parent, const char *file,
		       const char *place, unsigned int kind)
{
	char name[3 * CALLS_NAME_MAX];

	snprintf(name, sizeof(name), "%s (names not read yet)", file);
	return node_of(flamegraph, graph, parent, name, place, (kind & ~PLACE) | LATE);
}

static void merge_late(struct flamegraph *flamegraph, struct graph *graph, const json_t *named)
{
	struct interned keys = graph->keys;
	struct node *nodes = graph->nodes;
	__u32 *now = xmalloc((keys.nr + 1) * sizeof(*now));
	char file[2 * CALLS_NAME_MAX];

	interned_init(&graph->keys, sizeof(struct node_key));
	graph->nodes = NULL;
	graph->room = 0;
	for (size_t i = 0; i < keys.nr; i++) {
		struct node_key key = *(const struct node_key *)interned_at(&keys, i);
		struct drawn_key code =
			*(const struct drawn_key *)interned_at(&flamegraph->codes, nodes[i].code);
		const char *place = text_of_number(&flamegraph->texts, code.place),
			   *of = file_of(flamegraph, &code, file, sizeof(file));
		__u32 parent = key.parent == NOBODY ? NOBODY : now[key.parent];

		now[i] = code.kind & PLACE && json_object_get(named, of)
				 ? late_node(flamegraph, graph, parent, of, place, code.kind)
				 : node_of(flamegraph, graph, parent,
					   text_of_number(&flamegraph->texts, key.name), place, code.kind);
		for (int stream = 0; stream < 2; stream++)
			add_weight(&graph->nodes[now[i]].weight[stream], nodes[i].weight[stream]);
	}
	free(now);
	free(nodes);
	interned_release(&keys);
}

/* Names are late while a file is read, and records have places instead. What is named in one stream would
 * look new beside another that has its places, as in struct share_file: such places become nodes of a kind
 * that the page does not compare. */
static void merge_all_late(struct flamegraph *flamegraph)
{
	json_t *named = files_with_names(flamegraph);

	for (size_t i = 0; i < flamegraph->nr; i++)
		merge_late(flamegraph, &flamegraph->graphs[i], named);
	json_decref(named);
}

/* --- nodes in the order in which the page draws them ------------------------------------------ */

/* Nodes in depth-first order: a node before its children, and children by name. So a function is at the same
 * place in all graphs of the program, and each subtree is contiguous. */
struct order {
	const struct flamegraph *flamegraph;
	const struct graph *graph;
	__u32 *first, *next; /* of each node: its first child and its next sibling */
};

static const char *name_of(const struct order *order, __u32 number)
{
	const struct node_key *key = interned_at(&order->graph->keys, number);

	return text_of_number(&order->flamegraph->texts, key->name);
}

struct named {
	const char *name;
	__u32 parent, number;
};

static int by_parent_and_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int names;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	names = strcmp(x->name, y->name);
	return names ? names : x->number < y->number ? -1 : x->number > y->number;
}

static void find_children(struct order *order)
{
	size_t nr = order->graph->keys.nr;
	struct named *list = xmalloc(nr * sizeof(*list));

	for (size_t i = 0; i < nr; i++) {
		const struct node_key *key = interned_at(&order->graph->keys, i);

		list[i] = (struct named){name_of(order, i), key->parent, i};
		order->first[i] = order->next[i] = NOBODY;
	}
	qsort(list, nr, sizeof(*list), by_parent_and_name);
	for (size_t i = nr; i--;) {
		if (list[i].parent == NOBODY)
			continue;
		order->next[list[i].number] = order->first[list[i].parent];
		order->first[list[i].parent] = list[i].number;
	}
	free(list);
}

/* Fills in the numbers of the nodes in that order, and the depth of each. */
static void put_in_order(struct order *order, __u32 *numbers, __u32 *depths)
{
	__u32 *path = xmalloc((order->graph->keys.nr + 1) * sizeof(*path));
	size_t done = 0, depth = 0;
	__u32 at = 0; /* the root */

	find_children(order);
	while (at != NOBODY) {
		numbers[done] = at;
		depths[done++] = depth;
		path[depth] = at;
		if (order->first[at] != NOBODY) {
			at = order->first[at];
			depth++;
			continue;
		}
		while (depth && order->next[path[depth]] == NOBODY)
			depth--;
		at = depth ? order->next[path[depth]] : NOBODY;
	}
	free(path);
}

/* --- the page --------------------------------------------------------------------------------- */

static void add_column(struct text *page, const char *name, const struct graph *graph, const __u32 *numbers,
		       const __u32 *depths, int stream)
{
	text_add(page, ",\"%s\":[", name);
	for (size_t i = 0; i < graph->keys.nr; i++) {
		const struct node *node = &graph->nodes[numbers[i]];
		__u64 value = stream >= 0 ? node->weight[stream].sum : depths ? depths[i] : node->code;

		text_add(page, i ? ",%llu" : "%llu", value);
	}
	text_add(page, "]");
}

static void add_squares(struct text *page, const char *name, const struct graph *graph, const __u32 *numbers,
			int stream)
{
	text_add(page, ",\"%s\":[", name);
	for (size_t i = 0; i < graph->keys.nr; i++)
		text_add(page, i ? ",%.6g" : "%.6g", graph->nodes[numbers[i]].weight[stream].square);
	text_add(page, "]");
}

/* Writes an array for each column of the nodes, because browsers parse arrays of numbers faster than hundreds
 * of thousands of objects. */
static void add_graph(struct text *page, const struct flamegraph *flamegraph, const struct graph *graph)
{
	size_t size = graph->keys.nr * sizeof(__u32);
	struct order order = {flamegraph, graph, xmalloc(size), xmalloc(size)};
	__u32 *numbers = xmalloc(size), *depths = xmalloc(size);
	char *title = measurement_title(&flamegraph->activities, graph->measured);
	bool both = flamegraph->stream;

	put_in_order(&order, numbers, depths);
	text_add(page, "{\"name\":");
	add_json(page, value_text(title, strlen(title)));
	text_add(page, ",\"unit\":");
	add_json(page, value_text(graph->unit, sizeof(graph->unit)));
	text_add(page, ",\"lost\":%llu,\"throttled\":%llu,\"at_least\":%s", graph->lost[0] + graph->lost[1],
		 graph->throttled[0] + graph->throttled[1], graph->at_least ? "true" : "false");
	add_column(page, "depth", graph, numbers, depths, -1);
	add_column(page, "code", graph, numbers, NULL, -1);
	add_column(page, "weight", graph, numbers, NULL, both);
	if (both) {
		add_column(page, "before", graph, numbers, NULL, 0);
		add_squares(page, "squares", graph, numbers, 1);
		add_squares(page, "squaresBefore", graph, numbers, 0);
	}
	text_add(page, "}");
	free(title);
	free(numbers);
	free(depths);
	free(order.first);
	free(order.next);
}

static json_t *codes_value(const struct flamegraph *flamegraph)
{
	json_t *codes = json_array();

	for (size_t i = 0; i < flamegraph->codes.nr; i++) {
		const struct drawn_key *code = interned_at(&flamegraph->codes, i);

		json_array_append_new(codes, json_pack("[I, I, I]", (json_int_t)code->name,
						       (json_int_t)code->place, (json_int_t)code->kind));
	}
	return codes;
}

#define MARK "@DATA@"

void flamegraph_page(struct flamegraph *flamegraph, const char *title, struct text *page)
{
	struct embedded form = embedded_find("flamegraph.html");
	const char *mark = strstr(form.data, MARK);

	if (flamegraph->stream)
		merge_all_late(flamegraph);
	text_add(page, "%.*s", (int)(mark - form.data), form.data);
	text_add(page, "{\"title\":");
	add_json(page, value_text(title, strlen(title)));
	text_add(page, ",\"reverse\":%s,\"whole\":%s,\"texts\":", flamegraph->reverse ? "true" : "false",
		 flamegraph->whole[0] && flamegraph->whole[1] && !flamegraph->left_out ? "true" : "false");
	add_json(page, json_incref(flamegraph->texts.list));
	text_add(page, ",\"codes\":");
	add_json(page, codes_value(flamegraph));
	text_add(page, ",\"events\":[");
	for (size_t i = 0; i < flamegraph->nr; i++) {
		text_add(page, i ? "," : "");
		add_graph(page, flamegraph, &flamegraph->graphs[i]);
	}
	text_add(page, "]}%s", mark + strlen(MARK));
}
