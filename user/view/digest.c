// SPDX-License-Identifier: GPL-2.0-only
#include "view/digest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/interned.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/visible.h"
#include "output/activities.h"
#include "output/calls.h"
#include "output/member.h"
#include "output/rows.h"
#include "output/sharing.h"
#include "output/texts.h"
#include "record/record.h"
#include "view/cells.h"
#include "view/heading.h"
#include "view/share_tree.h"
#include "view/weights.h"

#define BUCKETS	      64  /* pieces that the time is divided into */
#define FIGURES_MOST  400 /* that have a line over time */
#define LINES_MOST    50  /* shared lines */
#define BRANCHES_MOST 100
#define PLACES_MOST   10  /* of a share */
#define NAME_MOST     300 /* bytes of a name */
#define CAUSES_MOST   16
#define STARTS_MOST   8
#define NODES_MOST    (1u << 16) /* of an event, until the smallest are forgotten */
#define NODE_BYTES    25	 /* of a node in the page, without its parts of the time */
#define PART_BYTES    10
#define FILES_MOST    (1u << 16) /* with code, of which the names of functions are known apart */

/* --- time ------------------------------------------------------------------------------------- */

/* The time of a stream in pieces. If it grows too long, each two neighbours become one. */
struct digest_time {
	__u64 began_ns, width_ns; /* 0: not known yet */
};

struct digest_line {
	float v[BUCKETS];
};

static void halve_line(struct digest_line *line)
{
	for (size_t i = 0; i < BUCKETS; i++)
		line->v[i] = i < BUCKETS / 2 ? line->v[2 * i] + line->v[2 * i + 1] : 0;
}

/* --- parts ------------------------------------------------------------------------------------ */

/* A number over time: of one that is averaged, each value times its duration. */
struct digest_figure {
	const struct measurement *measured;
	char *section, *unit;
	bool averaged;
	double value, low, high, weight;
	int depth;
	char *about;
	json_t *where; /* of a share: [{place, to, share}]; NULL */
	struct digest_line values, durations;
};

/* A node of an event's stacks: below the owner its functions, the outermost first. */
struct digest_node_key {
	__u32 parent, name;
};
#define NO_NODE (~0U)

/* Whose code a node is, as digits of the page. */
enum side { NO_CODE, USER_CODE, KERNEL_CODE };

struct digest_node {
	struct stood_for self; /* of samples that end here */
	double all;	       /* with all that is below */
	bool dropped;	       /* it is a part of its parent, for lack of room */
	enum side side;
	struct digest_line line;
};

struct digest_event {
	const struct measurement *measured;
	char *unit;
	bool stacks;
	struct interned keys;
	struct digest_node *nodes;
	size_t room;
	double expected, aggregated, throttled, enabled, running;
	bool at_least; /* some of what occurred was not counted */
	double least;  /* weight of the nodes that were too small to be kept */
	json_t *lost;
};

/* A file with code, as in struct share_file. */
struct digest_file {
	bool named;  /* some of its functions have names, or are known by their bounds */
	bool places; /* of some there is only the place */
};

/* Loads by source, and by the power of two that their latency is at least. */
#define LATENCIES 24
struct digest_source {
	const struct measurement *event;
	char *name;
	double period, latency, longest;
	json_int_t samples;
	struct digest_line of[LATENCIES];
};

struct digest {
	json_t *starts, *whys; /* the first start records; reasons of warnings and errors */
	json_int_t gaps, records;
	bool whole;
	struct digest_time time;
	struct activities activities;
	struct calls calls;
	struct call *path; /* functions of the entry that is being taken in */
	size_t path_room;
	struct numbered_texts texts;
	struct digest_figure *figures;
	size_t nr_figures, figures_room;
	json_t *known_figures, *verdict;
	json_t *parents; /* of shares: see view/share_tree.h */
	struct digest_event *events;
	size_t nr_events;
	struct sharing sharing;
	struct digest_source *sources;
	size_t nr_sources;
	json_t *lines;	  /* {cacheline: sums} */
	json_t *branches; /* {from, to: sums} */
	struct numbered_texts file_names;
	struct digest_file *files; /* by the numbers of their names */
	size_t files_room;
	bool many_files; /* there are more */
	__u32 *file_of;	 /* of each text that is a function: its file, plus 1; 0: none is known */
	size_t file_of_room, nr_file_of;
#define SEVERAL_FILES (~0U)
};

struct digest *digest_new(void)
{
	struct digest *digest = xcalloc(1, sizeof(*digest));

	digest->starts = json_array();
	digest->whys = json_object();
	digest->known_figures = json_object();
	digest->lines = json_object();
	digest->branches = json_object();
	digest->parents = json_object();
	activities_begin(&digest->activities);
	numbered_texts_init(&digest->texts);
	numbered_texts_init(&digest->file_names);
	return digest;
}

static void release_figure(struct digest_figure *figure)
{
	free(figure->section);
	free(figure->unit);
	free(figure->about);
	json_decref(figure->where);
}

static void release_event(struct digest_event *event)
{
	free(event->unit);
	free(event->nodes);
	interned_release(&event->keys);
	json_decref(event->lost);
}

void digest_release(struct digest *digest)
{
	for (size_t i = 0; i < digest->nr_figures; i++)
		release_figure(&digest->figures[i]);
	for (size_t i = 0; i < digest->nr_events; i++)
		release_event(&digest->events[i]);
	for (size_t i = 0; i < digest->nr_sources; i++)
		free(digest->sources[i].name);
	free(digest->figures);
	free(digest->events);
	free(digest->sources);
	activities_release(&digest->activities);
	calls_release(&digest->calls);
	free(digest->path);
	numbered_texts_release(&digest->texts);
	json_decref(digest->starts);
	json_decref(digest->whys);
	json_decref(digest->known_figures);
	json_decref(digest->verdict);
	json_decref(digest->lines);
	json_decref(digest->branches);
	json_decref(digest->parents);
	numbered_texts_release(&digest->file_names);
	free(digest->files);
	free(digest->file_of);
	free(digest);
}

static void halve_time(struct digest *digest)
{
	digest->time.width_ns *= 2;
	for (size_t i = 0; i < digest->nr_figures; i++) {
		halve_line(&digest->figures[i].values);
		halve_line(&digest->figures[i].durations);
	}
	for (size_t i = 0; i < digest->nr_events; i++)
		for (size_t n = 0; n < digest->events[i].keys.nr; n++)
			halve_line(&digest->events[i].nodes[n].line);
	for (size_t i = 0; i < digest->nr_sources; i++)
		for (size_t l = 0; l < LATENCIES; l++)
			halve_line(&digest->sources[i].of[l]);
}

#define LEAST_WIDTH_NS 1000000ULL

/* The piece of the time that an interval begins in. */
static size_t bucket_of(struct digest *digest, const json_t *record)
{
	struct digest_time *time = &digest->time;
	__u64 at = moment(record, "start_time"), duration = integer(record, "duration_ns");

	if (!at)
		return 0;
	if (!time->began_ns)
		time->began_ns = at;
	if (!time->width_ns)
		time->width_ns =
			duration > LEAST_WIDTH_NS && duration < 1ULL << 55 ? duration : LEAST_WIDTH_NS;
	if (at < time->began_ns)
		return 0;
	while ((at - time->began_ns) / time->width_ns >= BUCKETS)
		halve_time(digest);
	return (at - time->began_ns) / time->width_ns;
}

/* --- figures ---------------------------------------------------------------------------------- */

static struct digest_figure *digest_figure(struct digest *digest, const char *section, const json_t *record,
					   const char *name, const char *unit, bool averaged)
{
	const struct measurement *measured = measurement_in(&digest->activities, name, record);
	char *key = xasprintf("%s\n%s\n%s", section, measured->what, measured->activity);
	json_t *known = json_object_get(digest->known_figures, key);

	if (!known) {
		known = json_integer(digest->nr_figures);
		json_object_set_new_nocheck(digest->known_figures, key, known);
		digest->figures = xroom(digest->figures, digest->nr_figures, &digest->figures_room,
					sizeof(*digest->figures));
		digest->figures[digest->nr_figures++] = (struct digest_figure){
			.section = xstrdup(section),
			.measured = measured,
			.unit = xstrdup(unit),
			.averaged = averaged,
		};
	}
	free(key);
	return &digest->figures[json_integer_value(known)];
}

/* Adds an interval's value, with its bound. */
static void add_figure(struct digest *digest, struct digest_figure *figure, const json_t *record,
		       double value, double low, double high)
{
	size_t bucket = bucket_of(digest, record);
	double duration = fmax(integer(record, "duration_ns") / 1e9, 1e-9);
	double weight = figure->averaged ? duration : 1;

	figure->value += weight * value;
	figure->low += weight * low;
	figure->high += weight * high;
	figure->weight += weight;
	figure->values.v[bucket] += weight * value;
	figure->durations.v[bucket] += duration;
}

static void digest_bounded(struct digest *digest, struct digest_figure *figure, const json_t *record,
			   const json_t *of, const char *member)
{
	const json_t *bound = json_object_get(of, "bound");
	double value = real_member(of, member, NAN);

	if (!isnan(value))
		add_figure(digest, figure, record, value,
			   real_member(bound, "low", bound ? -INFINITY : value),
			   real_member(bound, "high", bound ? INFINITY : value));
}

static void digest_count(struct digest *digest, const json_t *record)
{
	char *name = row_title(record, string(record, "event"));

	digest_bounded(digest, digest_figure(digest, "counts", record, name, string(record, "unit"), false),
		       record, record, "scaled");
	free(name);
}

static void digest_metric(struct digest *digest, const json_t *record)
{
	char *name = row_title(record, string(record, "metric"));

	digest_bounded(digest, digest_figure(digest, "metrics", record, name, string(record, "unit"), true),
		       record, record, "value");
	free(name);
}

static void digest_summary(struct digest *digest, const json_t *record)
{
	bool metric = json_object_get(record, "metric");
	char *name = row_title(record, string(record, metric ? "metric" : "event"));
	double mean = real_member(record, "mean", NAN);
	double error = weight_mean_error(real_member(record, "stddev_of_mean", INFINITY),
					 integer(record, "counted"));

	if (integer(record, "counted") && !isnan(mean))
		add_figure(digest, digest_figure(digest, "means", record, name, string(record, "unit"), true),
			   record, mean, mean - error, mean + error);
	free(name);
}

static void digest_offcore(struct digest *digest, const json_t *record)
{
	json_t *cell;
	size_t i;

	json_array_foreach(json_object_get(record, "cells"), i, cell) {
		char *name = xasprintf("%s\n%s", string(cell, "request"), string(cell, "response"));

		digest_bounded(digest, digest_figure(digest, "offcore", record, name, "", false), record,
			       cell, "scaled");
		free(name);
	}
}

/* The places where most of a share is: [{place, to, share}]. */
static json_t *places_of(const json_t *share)
{
	const json_t *where = json_object_get(share, "where");
	json_t *places = json_array();

	for (size_t i = 0; i < PLACES_MOST && i < json_array_size(where); i++) {
		json_t *place = json_array_get(where, i);
		json_t *branch = json_pack("{sO sO*}", "from", place, "to", json_object_get(place, "to"));
		struct cell_source cells = {.record = branch, .entry = branch};
		char from[CELL_TEXT_MAX] = "", to[CELL_TEXT_MAX] = "";

		cell_text(&cells, "from", from, sizeof(from));
		cell_text(&cells, "to", to, sizeof(to));
		json_array_append_new(places, json_pack("{so so sf}", "place", value_text(from, NAME_MOST),
							"to", value_text(to, NAME_MOST), "share",
							real_member(place, "share", 0)));
		json_decref(branch);
	}
	return places;
}

static void digest_analysis(struct digest *digest, const json_t *record)
{
	const json_t *shares = json_object_get(record, "shares");
	json_t *share, *verdict = json_object_get(record, "verdict");
	size_t i;

	if (verdict) {
		json_decref(digest->verdict);
		digest->verdict = json_deep_copy(verdict);
	}
	share_tree_take(digest->parents, record);
	json_array_foreach(shares, i, share) {
		struct digest_figure *figure =
			digest_figure(digest, "analysis", record, string(share, "name"), "", true);
		double value = real_member(share, "share", NAN);

		if (!figure->about) {
			figure->about = xstrdup(string(share, "description"));
			figure->depth = share_tree_depth(digest->parents, string(share, "name"));
		}
		if (json_object_get(share, "where") && !figure->where)
			figure->where = places_of(share);
		if (!isnan(value))
			add_figure(digest, figure, record, value, real_member(share, "low", value),
				   real_member(share, "high", value));
	}
}

/* --- samples ---------------------------------------------------------------------------------- */

static struct digest_event *digest_event(struct digest *digest, const json_t *record)
{
	const char *type = string(record, "type"), *event = string(record, "event");
	bool clock = !strncmp(event, "cpu-clock", 9) || !strncmp(event, "task-clock", 10);
	char *title = row_title(record, event);
	char *name = xasprintf("%s%s%s%s%s", title, strcmp(type, "profile") ? " (" : "",
			       strcmp(type, "profile") ? type : "", strcmp(type, "profile") ? ")" : "",
			       strcmp(calls_kind(record), "range") ? "" : ", kind range");
	const struct measurement *measured = measurement_in(&digest->activities, name, record);
	struct digest_event *found;

	free(title);
	free(name);
	for (size_t i = 0; i < digest->nr_events; i++)
		if (digest->events[i].measured == measured)
			return &digest->events[i];
	found = xappend(digest->events, digest->nr_events);
	*found = (struct digest_event){
		.measured = measured, .unit = xstrdup(clock ? "ns" : event), .lost = json_object()};
	interned_init(&found->keys, sizeof(struct digest_node_key));
	return found;
}

/* The number of a name that is cut to what a page has room for. */
static __u32 short_name(struct digest *digest, const char *name)
{
	char text[NAME_MOST + 8];

	snprintf(text, sizeof(text), "%.*s%s", NAME_MOST, name, strlen(name) > NAME_MOST ? "…" : "");
	return text_number(&digest->texts, text);
}

static __u32 digest_node(struct digest *digest, struct digest_event *event, __u32 parent, const char *name)
{
	struct digest_node_key key = {parent, short_name(digest, name)};
	size_t seen = event->keys.nr;
	__u32 number = interned_number(&event->keys, &key);

	if (number == seen) {
		event->nodes = xroom(event->nodes, seen, &event->room, sizeof(*event->nodes));
		memset(&event->nodes[number], 0, sizeof(*event->nodes));
	}
	return number;
}

static const struct digest_node_key *node_key(const struct digest_event *event, size_t node)
{
	return interned_at(&event->keys, node);
}

/* The number of a file, by the last part of its path; FILES_MOST: there are too many. */
static __u32 digest_file(struct digest *digest, const char *module)
{
	const char *name = path_last(module);
	size_t seen = json_array_size(digest->file_names.list);
	__u32 number;

	if (seen >= FILES_MOST && !json_object_get(digest->file_names.numbers, name)) {
		digest->many_files = true;
		return FILES_MOST;
	}
	number = text_number(&digest->file_names, name);
	if (number == seen) {
		digest->files = xroom(digest->files, seen, &digest->files_room, sizeof(*digest->files));
		digest->files[number] = (struct digest_file){0};
	}
	return number;
}

static void add_file_of(struct digest *digest, __u32 text, __u32 file)
{
	while (digest->nr_file_of <= text) {
		digest->file_of = xroom(digest->file_of, digest->nr_file_of, &digest->file_of_room,
					sizeof(*digest->file_of));
		digest->file_of[digest->nr_file_of++] = 0;
	}
	if (file && digest->file_of[text] != file)
		digest->file_of[text] = digest->file_of[text] ? SEVERAL_FILES : file;
}

/* Notes whose code a node is. */
static void note_code(struct digest *digest, const struct call *call, __u32 text)
{
	const char *module = string(call->frame, "module");
	__u32 file = *module ? digest_file(digest, module) : FILES_MOST;

	add_file_of(digest, text, file < FILES_MOST ? file + 1 : 0);
	if (file == FILES_MOST)
		return;
	digest->files[file].named |= !calls_is_place(call);
	digest->files[file].places |= calls_is_place(call);
}

/* Whether that is known already. Functions of several files may have one name. */
static bool is_noted(const struct digest *digest, const struct call *call, __u32 text)
{
	__u32 file = text < digest->nr_file_of ? digest->file_of[text] : 0;

	return file && file != SEVERAL_FILES &&
	       !strcmp(path_last(string(call->frame, "module")),
		       text_of_number(&digest->file_names, file - 1));
}

/* The node of a function that is called by another one, or by none. */
static __u32 node_of_call(struct digest *digest, struct digest_event *event, __u32 parent,
			  const struct call *call)
{
	char name[CALLS_NAME_MAX];
	__u32 node = digest_node(digest, event, parent, calls_name(call, name, sizeof(name)));
	__u32 text = node_key(event, node)->name;

	if (!is_noted(digest, call, text))
		note_code(digest, call, text);
	event->nodes[node].side = calls_of_kernel(call->frame) ? KERNEL_CODE : USER_CODE;
	return node;
}

/* Entries without stacks have one function, or what they are aggregated by. */
static __u32 node_of_keys(struct digest *digest, struct digest_event *event, __u32 parent,
			  const json_t *entry, const json_t *record)
{
	static const char *const keys[] = {"symbol", "source", "cacheline", "cpu"};
	struct cell_source cells = {.record = record, .entry = entry};
	struct call call = cell_function(entry);
	char text[CELL_TEXT_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *found = cell_text(&cells, keys[i], text, sizeof(text));
		__u32 node = found ? digest_node(digest, event, parent, found) : 0;

		if (found && !i)
			note_code(digest, &call, node_key(event, node)->name);
		if (found)
			return node;
	}
	return parent;
}

static void digest_entry(struct digest *digest, struct digest_event *event, const json_t *record,
			 const json_t *entry, size_t bucket)
{
	const json_t *stack = json_object_get(entry, "stack");
	struct stood_for weight = stood_for_by(entry);
	char name[CALLS_NAME_MAX];
	__u32 node = digest_node(digest, event, 0, calls_owner(entry, name, sizeof(name)));
	size_t depth;

	event->stacks |= !!stack;
	if (*string(entry, "stack_lost"))
		node = digest_node(digest, event, node, "[stack lost]");
	depth = calls_path(&digest->calls, entry, &digest->path, &digest->path_room);
	for (size_t i = 0; i < depth; i++)
		node = node_of_call(digest, event, node, &digest->path[i]);
	if (!stack)
		node = node_of_keys(digest, event, node, entry, record);
	stood_for_add(&event->nodes[node].self, &weight);
	event->nodes[node].line.v[bucket] += weight.sum;
}

static void digest_account(struct digest_event *event, const json_t *record)
{
	const json_t *samples = json_object_get(record, "samples");
	const char *cause;
	json_t *count;

	event->expected += integer(samples, "expected");
	event->aggregated += integer(samples, "aggregated");
	event->throttled += integer(samples, "throttled");
	event->at_least |= json_is_true(json_object_get(samples, "at_least"));
	event->enabled += integer(record, "enabled_ns");
	event->running += integer(record, "running_ns");
	json_object_foreach(json_object_get(samples, "lost"), cause, count)
		if (json_object_get(event->lost, cause) || json_object_size(event->lost) < CAUSES_MOST)
			json_object_set_new(event->lost, cause,
					    json_integer(count_sum(integer(event->lost, cause),
								   json_integer_value(count))));
}

/* Sums up what is below each node. A parent has a lower number than its children. */
static void sum_up(struct digest_event *event)
{
	for (size_t i = 0; i < event->keys.nr; i++) {
		event->nodes[i].all = event->nodes[i].self.sum;
		event->nodes[i].dropped = false;
	}
	for (size_t i = event->keys.nr; i-- > 1;)
		event->nodes[node_key(event, i)->parent].all += event->nodes[i].all;
}

/* Makes nodes with less than this parts of their parents. Their sums were made by sum_up(). */
static void fold_small(struct digest_event *event, double least)
{
	for (size_t i = event->keys.nr; i-- > 1;) {
		struct digest_node *node = &event->nodes[i],
				   *parent = &event->nodes[node_key(event, i)->parent];

		if (node->all >= least && node->all > 0)
			continue;
		node->dropped = true;
		stood_for_add(&parent->self, &node->self);
		for (size_t b = 0; b < BUCKETS; b++)
			parent->line.v[b] += node->line.v[b];
		node->self = (struct stood_for){0};
		memset(&node->line, 0, sizeof(node->line));
	}
}

/* Gives the nodes that are left the lowest numbers. */
static void renumber_nodes(struct digest_event *event)
{
	__u32 *places = xmalloc(event->keys.nr * sizeof(*places));
	struct interned keys;

	interned_init(&keys, sizeof(struct digest_node_key));
	for (size_t i = 0; i < event->keys.nr; i++) {
		struct digest_node_key key = *node_key(event, i);

		if (event->nodes[i].dropped)
			continue;
		if (i)
			key.parent = places[key.parent];
		places[i] = interned_number(&keys, &key);
		event->nodes[places[i]] = event->nodes[i];
	}
	free(places);
	interned_release(&event->keys);
	event->keys = keys;
}

static size_t nodes_from(const struct digest_event *event, double least)
{
	size_t nr = 0;

	for (size_t i = 0; i < event->keys.nr; i++)
		nr += event->nodes[i].all >= least;
	return nr;
}

/* Keeps the texts that nodes have. The nodes keep their numbers. */
static void forget_texts(struct digest *digest)
{
	struct numbered_texts kept;
	__u32 *file_of = digest->file_of;
	size_t nr_file_of = digest->nr_file_of;

	numbered_texts_init(&kept);
	digest->file_of = NULL;
	digest->file_of_room = digest->nr_file_of = 0;
	for (size_t e = 0; e < digest->nr_events; e++) {
		struct digest_event *event = &digest->events[e];
		struct interned keys;

		interned_init(&keys, sizeof(struct digest_node_key));
		for (size_t i = 0; i < event->keys.nr; i++) {
			struct digest_node_key key = *node_key(event, i);

			__u32 old = key.name;

			key.name = text_number(&kept, text_of_number(&digest->texts, old));
			if (old < nr_file_of)
				add_file_of(digest, key.name, file_of[old]);
			interned_number(&keys, &key);
		}
		interned_release(&event->keys);
		event->keys = keys;
	}
	free(file_of);
	numbered_texts_release(&digest->texts);
	digest->texts = kept;
}

/* Stacks can be new for ever, so the smallest half of too many nodes become parts of their parents. */
static void bound_nodes(struct digest *digest, struct digest_event *event)
{
	double least = 0;

	if (event->keys.nr <= NODES_MOST)
		return;
	sum_up(event);
	for (double part = 1e-7; part < 1 && nodes_from(event, least) > NODES_MOST / 2; part *= 2)
		least = part * event->nodes[0].all;
	fold_small(event, least);
	renumber_nodes(event);
	event->least = fmax(event->least, least);
	forget_texts(digest);
}

static void digest_part(void *context, const json_t *record)
{
	struct digest *digest = context;
	struct digest_event *event = digest_event(digest, record);
	size_t bucket = bucket_of(digest, record), i;
	const json_t *rest = json_object_get(record, "rest");
	struct stood_for others = stood_for_by(rest);
	json_t *entry;

	bound_nodes(digest, event);
	if (!event->keys.nr)
		digest_node(digest, event, NO_NODE, "all");
	digest_account(event, record);
	json_array_foreach(json_object_get(record, "entries"), i, entry)
		digest_entry(digest, event, record, entry, bucket);
	if (rest) {
		__u32 node = digest_node(digest, event, 0, "[others]");

		stood_for_add(&event->nodes[node].self, &others);
		event->nodes[node].line.v[bucket] += others.sum;
	}
}

static void digest_samples(struct digest *digest, const json_t *record)
{
	calls_each_part(record, digest_part, digest);
}

/* --- loads ------------------------------------------------------------------------------------ */

static struct digest_source *digest_source(struct digest *digest, const json_t *record, const char *name)
{
	char *title = row_title(record, string(record, "event"));
	const struct measurement *event = measurement_in(&digest->activities, title, record);
	struct digest_source *source;

	free(title);
	for (size_t i = 0; i < digest->nr_sources; i++)
		if (digest->sources[i].event == event && !strcmp(digest->sources[i].name, name))
			return &digest->sources[i];
	source = xappend(digest->sources, digest->nr_sources);
	*source = (struct digest_source){.event = event, .name = xstrdup(name)};
	return source;
}

static void digest_loads(struct digest *digest, const json_t *record)
{
	size_t bucket = bucket_of(digest, record), i;
	json_t *found, *count;
	const char *bound;

	json_array_foreach(json_object_get(record, "sources"), i, found) {
		struct digest_source *source = digest_source(digest, record, string(found, "source"));

		source->samples = count_sum(source->samples, integer(found, "samples"));
		source->period += integer(found, "period");
		source->latency += integer(found, "latency_sum_period");
		source->longest = fmax(source->longest, integer(found, "latency_max"));
		json_object_foreach(json_object_get(found, "latency_histogram_period"), bound, count) {
			double least = strtod(bound, NULL);
			int power = least >= 1 && least < 1e15 ? ilogb(least) : 0;

			source->of[power < LATENCIES ? power : LATENCIES - 1].v[bucket] +=
				json_integer_value(count);
		}
	}
}

static void sum_member(json_t *to, const json_t *from, const char *name)
{
	json_object_set_new(to, name, json_real(real_member(to, name, 0) + real_member(from, name, 0)));
}

#define SUMS_ROOM 4096 /* of keys whose sums are kept; the smallest are forgotten */

static void forget_small(json_t *sums, const char *weight)
{
	double sum = 0, mean;
	const char *key;
	json_t *value;
	void *next;

	if (json_object_size(sums) < SUMS_ROOM)
		return;
	json_object_foreach(sums, key, value)
		sum += real_member(value, weight, 0);
	mean = sum / json_object_size(sums);
	json_object_foreach_safe(sums, next, key, value) if (real_member(value, weight, 0) <= mean)
		json_object_del(sums, key);
}

static void digest_shared_line(struct digest *digest, const json_t *record)
{
	static const char *const added[] = {"loads",	  "stores", "modified",
					    "other_core", "period", "modified_period"};
	static const char *const highest[] = {"readers", "writers", "threads", "offsets_in_common"};
	const char *address = string(record, "cacheline");
	json_t *line = json_object_get(digest->lines, address);
	const json_t *entry = json_array_get(json_object_get(record, "entries"), 0);
	struct cell_source cells = {.record = record, .entry = entry};
	char text[CELL_TEXT_MAX];

	if (!line) {
		forget_small(digest->lines, "period");
		line = json_object();
		json_object_set_new(digest->lines, address, line);
	}
	if (integer(record, "part") > 1)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(added); i++)
		sum_member(line, record, added[i]);
	for (size_t i = 0; i < ARRAY_SIZE(highest); i++)
		json_object_set_new(line, highest[i],
				    json_real(fmax(real_member(line, highest[i], 0),
						   real_member(record, highest[i], 0))));
	if (entry && cell_text(&cells, "code", text, sizeof(text)))
		json_object_set_new(line, "code", value_text(text, NAME_MOST));
}

static void digest_branches(struct digest *digest, const json_t *record)
{
	json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(record, "entries"), i, entry) {
		struct cell_source cells = {.record = record, .entry = entry};
		char from[CELL_TEXT_MAX] = "", to[CELL_TEXT_MAX] = "", *key;
		json_t *sums;

		if (!strcmp(string(entry, "kind"), "range"))
			continue;
		cell_text(&cells, "from", from, sizeof(from));
		cell_text(&cells, "to", to, sizeof(to));
		key = xasprintf("%.*s\n%.*s", NAME_MOST, from, NAME_MOST, to);
		sums = json_object_get(digest->branches, key);
		if (!sums) {
			forget_small(digest->branches, "count");
			sums = json_pack("{so so}", "from", value_text(from, NAME_MOST), "to",
					 value_text(to, NAME_MOST));
			json_object_set_new_nocheck(digest->branches, key, sums);
		}
		free(key);
		sum_member(sums, entry, "count");
		sum_member(sums, entry, "period");
		sum_member(sums, entry, "mispredicted");
		sum_member(sums, entry, "mispredicted_period");
	}
}

/* --- records ---------------------------------------------------------------------------------- */

static void digest_start(struct digest *digest, const json_t *record)
{
	digest->whole = false;
	if (json_array_size(digest->starts) < STARTS_MOST)
		json_array_append_new(digest->starts, json_deep_copy(record));
}

static void digest_frames(struct digest *digest, const json_t *record)
{
	calls_define(&digest->calls, record);
}

static void add_why(void *of, const char *why)
{
	struct digest *digest = of;

	if (*why && json_object_size(digest->whys) < CAUSES_MOST)
		json_object_set_new(digest->whys, why, json_true());
}

static void digest_why(struct digest *digest, const json_t *record)
{
	add_why(digest, string(record, "why"));
}

static void digest_end(struct digest *digest, const json_t *record)
{
	digest->whole = json_object_get(record, "command") && !strcmp(string(record, "reason"), "exited");
	names_doubts(json_object_get(record, "names"), HAD_NO_NAME, add_why, digest);
}

static void digest_gap(struct digest *digest, const json_t *record)
{
	digest->gaps = count_sum(digest->gaps, integer(record, "records"));
}

void digest_take(struct digest *digest, const json_t *record)
{
	static const struct {
		const char *type;
		void (*take)(struct digest *digest, const json_t *record);
		bool parts; /* later parts count, too */
	} takers[] = {
		{"start", digest_start, false},
		{"end", digest_end, false},
		{"frames", digest_frames, true},
		{"warning", digest_why, false},
		{"error", digest_why, false},
		{"gap", digest_gap, false},
		{"count", digest_count, true},
		{"metric", digest_metric, true},
		{"summary", digest_summary, true},
		{"offcore", digest_offcore, true},
		{"analysis", digest_analysis, true},
		{"profile", digest_samples, true},
		{"mem", digest_samples, true},
		{"branch", digest_samples, true},
		{"mem", digest_loads, true},
		{"branch", digest_branches, true},
		{"shared_line", digest_shared_line, false},
	};

	digest->records++;
	sharing_take(&digest->sharing, record);
	for (size_t i = 0; i < ARRAY_SIZE(takers); i++)
		if (!strcmp(takers[i].type, string(record, "type")) &&
		    (takers[i].parts || integer(record, "part") <= 1))
			takers[i].take(digest, record);
}

bool digest_has_content(const struct digest *digest)
{
	return digest->nr_figures || digest->nr_events || json_object_size(digest->lines);
}

/* --- as a value ------------------------------------------------------------------------------- */

/* A number with as many digits as a picture needs. NULL if it is not finite. */
static json_t *rounded(double number)
{
	double unit;
	char text[40];

	if (!isfinite(number))
		return json_null();
	if (fabs(number) < 9e15 && number == rint(number))
		return json_integer((json_int_t)number);
	if (!number)
		return json_integer(0);
	unit = pow(10, floor(log10(fabs(number))) - 5);
	if (unit >= 1)
		return json_integer(fabs(number) < 9e18 ? (json_int_t)(rint(number / unit) * unit) : 0);
	snprintf(text, sizeof(text), "%.6g", number);
	return json_real(strtod(text, NULL));
}

/* The parts of the time that are not 0: [index, value, index, value, ...]. */
static json_t *parts_value(const struct digest_line *line)
{
	json_t *value = json_array();

	for (size_t i = 0; i < BUCKETS; i++) {
		if (!line->v[i])
			continue;
		json_array_append_new(value, json_integer(i));
		json_array_append_new(value, rounded(line->v[i]));
	}
	return value;
}

/* A text of others, without what would control or reorder the text around it. One that is too long is
 * shortened in its middle: what tells names apart is often their end. */
static json_t *shown_value(const char *text)
{
	size_t size = VISIBLE_MAX * strlen(text) + 1, length;
	char *shown = xmalloc(size), *cut;
	json_t *value;

	length = visible_lines(shown, size, text);
	cut = length > NAME_MOST ? xasprintf("%.*s…%s", NAME_MOST / 2, shown, shown + length - NAME_MOST / 2)
				 : xstrdup(shown);
	value = value_text(cut, strlen(cut));
	free(cut);
	free(shown);
	return value;
}

/* The name of what was measured. */
static json_t *title_value(const struct digest *digest, const struct measurement *measured)
{
	char *title = measurement_title(&digest->activities, measured);
	json_t *value = shown_value(title);

	free(title);
	return value;
}

static json_t *figure_value(const struct digest *digest, const struct digest_figure *figure, bool lines)
{
	double by = figure->averaged && figure->weight ? figure->weight : 1;
	json_t *value =
		json_pack("{so so so so so so sb si}", "section", value_text(figure->section, 40), "name",
			  title_value(digest, figure->measured), "unit", shown_value(figure->unit), "value",
			  rounded(figure->value / by), "low", rounded(figure->low / by), "high",
			  rounded(figure->high / by), "averaged", figure->averaged, "depth", figure->depth);

	if (figure->about)
		json_object_set_new(value, "about", shown_value(figure->about));
	if (figure->where)
		json_object_set(value, "where", figure->where);
	if (!figure->weight)
		json_object_set_new(value, "value", json_null());
	if (lines) {
		json_object_set_new(value, "values", parts_value(&figure->values));
		json_object_set_new(value, "durations", parts_value(&figure->durations));
	}
	return value;
}

static json_t *figures_value(const struct digest *digest)
{
	json_t *values = json_array();

	for (size_t i = 0; i < digest->nr_figures && i < 4 * FIGURES_MOST; i++)
		json_array_append_new(values, figure_value(digest, &digest->figures[i], i < FIGURES_MOST));
	return values;
}

static json_t *source_value(const struct digest *digest, const struct digest_source *source)
{
	json_t *cells = json_array();
	double measured = 0;

	for (size_t l = 0; l < LATENCIES; l++)
		for (size_t i = 0; i < BUCKETS; i++) {
			if (!source->of[l].v[i])
				continue;
			measured += source->of[l].v[i];
			json_array_append_new(
				cells, json_pack("[i i o]", (int)l, (int)i, rounded(source->of[l].v[i])));
		}
	return json_pack("{so so sI so so so so}", "event", title_value(digest, source->event), "name",
			 shown_value(source->name), "samples", source->samples, "period",
			 rounded(source->period), "mean", rounded(measured ? source->latency / measured : 0),
			 "max", rounded(source->longest), "cells", cells);
}

static json_t *sources_value(const struct digest *digest)
{
	json_t *values = json_array();

	for (size_t i = 0; i < digest->nr_sources && i < 64; i++)
		json_array_append_new(values, source_value(digest, &digest->sources[i]));
	return values;
}

struct weighed_member {
	const char *key;
	json_t *value;
	double weight;
};

static int by_weight(const void *a, const void *b)
{
	const struct weighed_member *x = a, *y = b;

	return x->weight != y->weight ? (x->weight > y->weight ? -1 : 1) : strcmp(x->key, y->key);
}

/* The largest of the sums, each with its key as a member of this name. */
static json_t *largest_sums(json_t *sums, const char *weight, const char *key_name, size_t most)
{
	struct weighed_member *list = xmalloc((json_object_size(sums) + 1) * sizeof(*list));
	json_t *values = json_array(), *value;
	const char *key;
	size_t nr = 0;

	json_object_foreach(sums, key, value)
		list[nr++] = (struct weighed_member){key, value, real_member(value, weight, 0)};
	qsort(list, nr, sizeof(*list), by_weight);
	for (size_t i = 0; i < nr && i < most; i++) {
		value = json_copy(list[i].value);
		if (key_name)
			json_object_set_new(value, key_name, json_string(list[i].key));
		json_array_append_new(values, value);
	}
	free(list);
	return values;
}

/* --- stacks ----------------------------------------------------------------------------------- */

static size_t parts_of(const struct digest_line *line)
{
	size_t parts = 0;

	for (size_t i = 0; i < BUCKETS; i++)
		parts += line->v[i] != 0;
	return parts;
}

/* Bytes of a text as JSON in ASCII: a character of several bytes takes six or twelve. */
static size_t bytes_of_text(const char *text)
{
	size_t bytes = 6; /* what is around it, and its file */

	for (; *text; text++)
		bytes += *text & 0x80 ? 3 : *text == '"' || *text == '\\' ? 2 : *text == '<' ? 6 : 1;
	return bytes;
}

/* Bytes that an event's nodes of at least this weight take, with their names. */
static size_t bytes_from(const struct digest *digest, const struct digest_event *event, double least)
{
	bool *named = xcalloc(json_array_size(digest->texts.list) + 1, sizeof(*named));
	size_t bytes = 0;

	for (size_t i = 0; i < event->keys.nr; i++) {
		__u32 name = node_key(event, i)->name;

		if (event->nodes[i].all < least && i)
			continue;
		bytes += NODE_BYTES + PART_BYTES * parts_of(&event->nodes[i].line);
		if (!named[name])
			bytes += bytes_of_text(text_of_number(&digest->texts, name));
		named[name] = true;
	}
	free(named);
	return bytes;
}

/* Makes nodes that are too small parts of their parents, until the rest takes no more than this. */
static void drop_small(const struct digest *digest, struct digest_event *event, size_t bytes)
{
	double least = 0;

	for (double part = 1e-7; part < 1 && bytes_from(digest, event, least) > bytes; part *= 2)
		least = part * event->nodes[0].all;
	fold_small(event, least);
	event->least = fmax(event->least, least);
}

/* Nodes as columns: the parent by its place among those that are kept, the name, what is its own, by time,
 * and a digit for whose code it is. `size` is what a sample stands for on average, from which bounds follow.
 */
static json_t *sampled_value(const struct digest *digest, struct digest_event *event, size_t bytes)
{
	json_t *parents = json_array(), *names = json_array(), *sizes = json_array(), *lines = json_array();
	size_t *places = xmalloc((event->keys.nr + 1) * sizeof(*places)), kept = 0;
	char *sides = xmalloc(event->keys.nr + 1);
	json_t *value;

	sum_up(event);
	drop_small(digest, event, bytes);
	for (size_t i = 0; i < event->keys.nr; i++) {
		const struct digest_node *node = &event->nodes[i];
		__u32 parent = node_key(event, i)->parent;

		if (node->dropped)
			continue;
		sides[kept] = '0' + node->side;
		places[i] = kept++;
		json_array_append_new(parents, json_integer(i ? (json_int_t)places[parent] : -1));
		json_array_append_new(names, json_integer(node_key(event, i)->name));
		json_array_append_new(sizes,
				      rounded(node->self.sum ? node->self.square / node->self.sum : 0));
		json_array_append_new(lines, parts_value(&node->line));
	}
	sides[kept] = '\0';
	free(places);
	value = json_pack("{so so sb so sb so so so so sO so so so so so so ss}", "name",
			  title_value(digest, event->measured), "unit", shown_value(event->unit), "stacks",
			  event->stacks, "throttled", rounded(event->throttled), "at_least", event->at_least,
			  "expected", rounded(event->expected), "aggregated", rounded(event->aggregated),
			  "enabled", rounded(event->enabled), "running", rounded(event->running), "lost",
			  event->lost, "least", rounded(event->least), "total", rounded(event->nodes[0].all),
			  "parents", parents, "names", names, "sizes", sizes, "lines", lines, "sides", sides);
	free(sides);
	return value;
}

static json_t *events_value(const struct digest *digest, size_t bytes)
{
	json_t *values = json_array();

	for (size_t i = 0; i < digest->nr_events; i++)
		json_array_append_new(values,
				      sampled_value(digest, &digest->events[i], bytes / digest->nr_events));
	return values;
}

/* The texts of nodes that are shown; the others stay empty. */
static json_t *texts_value(const struct digest *digest, const json_t *events)
{
	size_t nr = json_array_size(digest->texts.list), i, n;
	bool *used = xcalloc(nr + 1, sizeof(*used));
	json_t *values = json_array(), *event, *name;

	json_array_foreach(events, i, event)
		json_array_foreach(json_object_get(event, "names"), n, name)
			used[json_integer_value(name)] = true;
	for (i = 0; i < nr; i++)
		json_array_append_new(values, used[i] ? json_incref(json_array_get(digest->texts.list, i))
						      : json_integer(0));
	free(used);
	return values;
}

/* What was measured, on what, from the start record. */
static json_t *source_of_stream(const json_t *start)
{
	const json_t *host = json_object_get(start, "host");
	const char *const members[] = {"command", "time", "version", "default_event_why"};
	json_t *value = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		json_object_set_new(value, members[i], shown_value(string(start, members[i])));
	json_object_set_new(value, "cpu", shown_value(string(json_object_get(host, "cpu"), "model_name")));
	json_object_set_new(value, "kernel", shown_value(string(host, "kernel")));
	json_object_set_new(value, "host",
			    shown_value(string(json_object_get(start, "resource"), "host.name")));
	json_object_set(value, "emulated", (json_t *)emulated_host(start));
	return value;
}

/* The words of the target, each of a bounded length. */
static json_t *target_value(const json_t *start)
{
	const json_t *target = json_object_get(start, "target");
	json_t *words = json_array(), *word;
	const char *key;
	size_t i;

	json_array_foreach(json_object_get(target, "process.command_args"), i, word)
		if (i < 20 && json_is_string(word))
			json_array_append_new(words, shown_value(json_string_value(word)));
	json_object_foreach((json_t *)target, key, word) {
		char *named;

		if (!json_is_string(word) || json_array_size(words))
			continue;
		named = xasprintf("%s %s", key, json_string_value(word));
		json_array_append_new(words, shown_value(named));
		free(named);
	}
	return words;
}

/* Each run of the stream. */
static json_t *runs_value(const struct digest *digest)
{
	json_t *runs = json_array(), *start;
	size_t i;

	json_array_foreach(digest->starts, i, start)
		json_array_append_new(runs, json_pack("{so so}", "start", source_of_stream(start), "target",
						      target_value(start)));
	if (!i)
		json_array_append_new(
			runs, json_pack("{so so}", "start", source_of_stream(NULL), "target", json_array()));
	return runs;
}

void digest_align(struct digest *digest, const struct digest *other)
{
	if (!digest->time.began_ns)
		digest->time.width_ns = other->time.width_ns;
	while (digest->time.width_ns && digest->time.width_ns < other->time.width_ns)
		halve_time(digest);
}

/* --- names that are late beside another stream ------------------------------------------------ */

static struct digest_file file_in(const struct digest *digest, const char *name)
{
	json_t *number = json_object_get(digest->file_names.numbers, name);

	return number ? digest->files[json_integer_value(number)] : (struct digest_file){0};
}

#define LATE_BYTES (512u << 10) /* of the names of files in a page */

/* The files of a stream that have names in one of both streams and places in one: {name: a number from 1}.
 * `more`: set if there are more than a page has room for. */
static json_t *late_files(const struct digest *digest, const struct digest *other, bool *more)
{
	json_t *late = json_object(), *name;
	size_t i, bytes = 0;

	json_array_foreach(digest->file_names.list, i, name) {
		struct digest_file here = digest->files[i], there = file_in(other, json_string_value(name));

		if (!(here.named || there.named) || !(here.places || there.places))
			continue;
		bytes += bytes_of_text(json_string_value(name));
		if (bytes > LATE_BYTES) {
			*more = true;
			break;
		}
		json_object_set_new(late, json_string_value(name), json_integer(json_object_size(late) + 1));
	}
	return late;
}

/* Of each text the number of such a file; 0: it is another file's, -1: several files', or of none that is
 * known.
 */
static json_t *late_of_texts(const struct digest *digest, const json_t *late)
{
	json_t *values = json_array();

	for (size_t i = 0; i < json_array_size(digest->texts.list); i++) {
		__u32 file = i < digest->nr_file_of ? digest->file_of[i] : 0;
		bool known = file && file != SEVERAL_FILES;

		json_array_append_new(
			values,
			json_integer(known ? integer(late, text_of_number(&digest->file_names, file - 1))
					   : -1));
	}
	return values;
}

/* What the page must know so as not to compare names with places: see struct share_file. NULL: nothing. */
static json_t *late_value(const struct digest *digest, const struct digest *other)
{
	bool more = digest->many_files;
	json_t *files, *of;

	if (!other)
		return NULL;
	files = late_files(digest, other, &more);
	of = json_object_size(files) ? late_of_texts(digest, files) : json_array();
	return json_pack("{so so sb}", "files", files, "of", of, "any", more);
}

json_t *digest_value(const struct digest *digest, const struct digest *other, const char *name,
		     const struct stored_end *end, size_t bytes)
{
	json_t *events = events_value(digest, bytes), *why_texts = json_array(), *why;
	const char *text;

	json_object_foreach(digest->whys, text, why)
		json_array_append_new(why_texts, shown_value(text));
	return json_pack("{so so sb sb sI sI so sf sf si so so so so so so so sO* so*}", "name",
			 shown_value(name), "runs", runs_value(digest), "whole", digest->whole && !end->cut,
			 "ended", !*stored_early_end(end), "gaps", digest->gaps, "records", digest->records,
			 "whys", why_texts, "began", digest->time.began_ns / 1e9, "width",
			 digest->time.width_ns / 1e9, "buckets", BUCKETS, "figures", figures_value(digest),
			 "sources", sources_value(digest), "shared",
			 rounded(sharing_untold(&digest->sharing)), "lines",
			 largest_sums(digest->lines, "period", "cacheline", LINES_MOST), "branches",
			 largest_sums(digest->branches, "count", NULL, BRANCHES_MOST), "texts",
			 texts_value(digest, events), "events", events, "verdict", digest->verdict, "late",
			 late_value(digest, other));
}
