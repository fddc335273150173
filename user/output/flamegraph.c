// SPDX-License-Identifier: GPL-2.0-only
#include "output/flamegraph.h"

#include <stdlib.h>
#include <string.h>

#include "embedded.h"
#include "interned.h"
#include "memory.h"
#include "output/calls.h"
#include "output/member.h"
#include "record/record.h"

/* What kind of code a node is: bits of the page's own. */
enum { OTHER = 0, USER = 1, KERNEL = 2, INLINED = 4 };

/* What tells the nodes of an event apart: a function stands once below each caller. */
struct node_key {
	__u32 parent; /* its number; NOBODY: the root */
	__u32 name;   /* its place in the texts */
	__u64 kind;
};
#define NOBODY (~0U)

struct node {
	__u32 place; /* where its code comes from: in the texts */
	__u64 samples;
};

struct graph {
	char name[160];
	struct interned keys; /* of nodes, by number: a parent's is less than its children's */
	struct node *nodes;
	size_t room;
	__u64 lost; /* samples that are in no entry */
};

struct flamegraph {
	struct calls calls;
	json_t *texts;	/* in their order */
	json_t *places; /* {text: its place} */
	struct graph *graphs;
	size_t nr;
};

struct flamegraph *flamegraph_new(void)
{
	struct flamegraph *flamegraph = xcalloc(1, sizeof(*flamegraph));

	flamegraph->texts = json_array();
	flamegraph->places = json_object();
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
	json_decref(flamegraph->texts);
	json_decref(flamegraph->places);
	free(flamegraph);
}

size_t flamegraph_events(const struct flamegraph *flamegraph)
{
	return flamegraph->nr;
}

/* --- taking in -------------------------------------------------------------------------------- */

static __u64 number_of(const json_t *object, const char *name)
{
	json_int_t number = integer(object, name);

	return number > 0 ? number : 0;
}

static __u32 add_text(struct flamegraph *flamegraph, const char *text)
{
	json_t *value = value_text(text, strlen(text)); /* a text that was cut may end within a character */
	json_t *known = json_object_get(flamegraph->places, json_string_value(value));

	if (!known) {
		known = json_integer(json_array_size(flamegraph->texts));
		json_object_set_new(flamegraph->places, json_string_value(value), known);
		json_array_append(flamegraph->texts, value);
	}
	json_decref(value);
	return json_integer_value(known);
}

/* The number of a node, with so many samples more. */
static __u32 add_node(struct flamegraph *flamegraph, struct graph *graph, __u32 parent, const char *name,
		      const char *place, unsigned int kind, __u64 samples)
{
	struct node_key key = {parent, add_text(flamegraph, name), kind};
	size_t seen = graph->keys.nr;
	__u32 number = interned_number(&graph->keys, &key);

	if (graph->keys.nr > graph->room) {
		graph->room = 2 * graph->keys.nr;
		graph->nodes = xrealloc(graph->nodes, graph->room * sizeof(*graph->nodes));
	}
	if (number == seen)
		graph->nodes[number] = (struct node){.place = add_text(flamegraph, place)};
	graph->nodes[number].samples += samples;
	return number;
}

static struct graph *graph_of(struct flamegraph *flamegraph, const char *event)
{
	struct graph *graph;

	for (size_t i = 0; i < flamegraph->nr; i++)
		if (!strcmp(flamegraph->graphs[i].name, event))
			return &flamegraph->graphs[i];
	flamegraph->graphs = xrealloc(flamegraph->graphs, (flamegraph->nr + 1) * sizeof(*flamegraph->graphs));
	graph = &flamegraph->graphs[flamegraph->nr++];
	*graph = (struct graph){0};
	snprintf(graph->name, sizeof(graph->name), "%s", event);
	interned_init(&graph->keys, sizeof(struct node_key));
	return graph;
}

/* "/usr/bin/true · main.c" */
static const char *place_of(const struct call *call, char *text, size_t size)
{
	const char *module = string(call->frame, "module");

	snprintf(text, size, "%s%s%s", module, *module && call->file ? " · " : "",
		 call->file ? call->file : "");
	return text;
}

static __u32 add_frame(struct flamegraph *flamegraph, struct graph *graph, __u32 parent, const json_t *frame,
		       __u64 samples)
{
	unsigned int side = calls_of_kernel(frame) ? KERNEL : USER;
	char name[CALLS_NAME_MAX], place[2 * CALLS_NAME_MAX];

	for (size_t i = calls_in(frame); i--;) {
		struct call call = calls_at(frame, i);

		parent = add_node(flamegraph, graph, parent, calls_name(&call, name, sizeof(name)),
				  place_of(&call, place, sizeof(place)), side | (call.inlined ? INLINED : 0),
				  samples);
	}
	return parent;
}

static void take_entry(struct flamegraph *flamegraph, struct graph *graph, __u32 root, const json_t *entry)
{
	__u64 samples = number_of(entry, "samples");
	const json_t *stack = json_object_get(entry, "stack");
	const char *lost = string(entry, "stack_lost");
	char owner[CALLS_NAME_MAX], words[64];
	__u32 parent;

	calls_owner(entry, owner, sizeof(owner));
	parent = add_node(flamegraph, graph, root, owner, "", OTHER, samples);
	for (size_t i = json_array_size(stack); i--;)
		parent = add_frame(
			flamegraph, graph, parent,
			calls_frame(&flamegraph->calls, json_integer_value(json_array_get(stack, i))),
			samples);
	if (!*lost)
		return;
	snprintf(words, sizeof(words), "[stack lost: %.32s]", lost);
	add_node(flamegraph, graph, parent, words, "", OTHER, samples);
}

static void take_profile(struct flamegraph *flamegraph, const json_t *record)
{
	struct graph *graph = graph_of(flamegraph, string(record, "event"));
	const json_t *rest = json_object_get(record, "rest");
	json_t *entry, *count;
	const char *cause;
	__u64 sum = number_of(rest, "samples");
	__u32 root;
	size_t i;

	json_array_foreach(json_object_get(record, "entries"), i, entry) sum += number_of(entry, "samples");
	root = add_node(flamegraph, graph, NOBODY, "all", "", OTHER, sum);
	json_array_foreach(json_object_get(record, "entries"), i, entry)
		take_entry(flamegraph, graph, root, entry);
	if (rest)
		add_node(flamegraph, graph, root, "[others]", "", OTHER, number_of(rest, "samples"));
	json_object_foreach(json_object_get(json_object_get(record, "samples"), "lost"), cause, count)
		graph->lost += json_integer_value(count);
}

/* A part of a profile has no stacks' account but the first; all have entries. */
static bool has_stacks(const json_t *record)
{
	return json_object_get(json_array_get(json_object_get(record, "entries"), 0), "stack");
}

void flamegraph_take(struct flamegraph *flamegraph, const json_t *record)
{
	const char *type = string(record, "type");

	if (!strcmp(type, "frames"))
		calls_define(&flamegraph->calls, record);
	if (!strcmp(type, "profile") && has_stacks(record))
		take_profile(flamegraph, record);
}

/* --- the page --------------------------------------------------------------------------------- */

static json_t *graph_value(const struct graph *graph)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < graph->keys.nr; i++) {
		const struct node_key *key = interned_at(&graph->keys, i);

		json_array_append_new(rows,
				      json_pack("[I, I, I, I, I]",
						key->parent == NOBODY ? -1 : (json_int_t)key->parent,
						(json_int_t)key->name, (json_int_t)graph->nodes[i].place,
						(json_int_t)key->kind, (json_int_t)graph->nodes[i].samples));
	}
	return json_pack("{s:o, s:I, s:o}", "name", value_text(graph->name, sizeof(graph->name)), "lost",
			 (json_int_t)graph->lost, "rows", rows);
}

/* JSON that may stand in a page: with no '<', whatever the names are, nothing in it ends the element. */
static void add_json(struct text *page, json_t *value)
{
	char *dumped = json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII);

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

#define MARK "@DATA@"

void flamegraph_page(const struct flamegraph *flamegraph, const char *title, struct text *page)
{
	struct embedded form = embedded_find("flamegraph.html");
	const char *mark = strstr(form.data, MARK);
	json_t *events = json_array();

	for (size_t i = 0; i < flamegraph->nr; i++)
		json_array_append_new(events, graph_value(&flamegraph->graphs[i]));
	text_add(page, "%.*s", (int)(mark - form.data), form.data);
	add_json(page, json_pack("{s:o, s:O, s:o}", "title", value_text(title, strlen(title)), "texts",
				 flamegraph->texts, "events", events));
	text_add(page, "%s", mark + strlen(MARK));
}
