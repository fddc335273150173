// SPDX-License-Identifier: GPL-2.0-only
/*
 * A profile in Callgrind's format (valgrind's manual, "Callgrind Format Specification") for KCachegrind and
 * callgrind_annotate: what each line of a function costs by itself, and what its calls cost.
 *
 *     ob=(1) /usr/bin/demo
 *     fl=(1) demo.c
 *     fn=(3) work
 *     17 4 4000
 *     cob=(1)
 *     cfi=(1)
 *     cfn=(4) step
 *     calls=20 0
 *     19 20 20000
 *
 * Samples do not count calls: `calls` has the samples in what was called. Names always come with a number, so
 * a name that looks like one is no trouble. A call that is in a stack several times, by recursion, counts
 * once.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/visible.h"
#include "output/member.h"
#include "output/profiles.h"
#include "output/remarks.h"
#include "output/text.h"

struct callgrind_file {
	const struct calls *calls;
	const struct measure *measures;
	size_t nr_measures;
	json_t *known;	   /* {module, file and name: index of the function} */
	json_t *functions; /* [{module, file, name, lines: {line: costs}, calls: {"line callee": costs}}] */
	json_t *stack;	   /* that is being made: [function, line, ...], the outermost first */
	json_int_t sums[MEASURES];
};

static json_int_t function_of(struct callgrind_file *file, const struct step *step)
{
	const char *module = step->call ? string(step->call->frame, "module") : "";
	const char *source = step->call && step->call->file ? step->call->file : "???";
	json_t *key = json_sprintf("%s\n%s\n%s", module, source, step->name);
	json_t *index = json_object_get(file->known, json_string_value(key));

	if (!index) {
		index = json_integer(json_array_size(file->functions));
		json_object_set_new(file->known, json_string_value(key), index);
		json_array_append_new(file->functions,
				      json_pack("{ss ss ss s{} s{}}", "module", *module ? module : "???",
						"file", source, "name", step->name, "lines", "calls"));
	}
	json_decref(key);
	return json_integer_value(index);
}

static void add_step(void *of, const struct step *step)
{
	struct callgrind_file *file = of;

	json_array_append_new(file->stack, json_integer(function_of(file, step)));
	json_array_append_new(file->stack, json_integer(step->call ? step->call->line : 0));
}

static void add_costs(const struct callgrind_file *file, json_t *places, const char *place,
		      const json_t *entry)
{
	json_t *costs = json_object_get(places, place);

	if (!costs) {
		costs = json_array();
		json_object_set_new(places, place, costs);
		for (size_t i = 0; i < file->nr_measures; i++)
			json_array_append_new(costs, json_integer(0));
	}
	for (size_t i = 0; i < file->nr_measures; i++) {
		json_t *cost = json_array_get(costs, i);

		json_integer_set(cost, json_integer_value(cost) + integer(entry, file->measures[i].member));
	}
}

static json_int_t in_stack(const struct callgrind_file *file, size_t i)
{
	return json_integer_value(json_array_get(file->stack, i));
}

/* Adds the costs of an entry to the innermost function of the stack, and to each call that leads there. */
static void add_stack(struct callgrind_file *file, const json_t *entry)
{
	size_t last = json_array_size(file->stack) - 2;
	json_t *seen = json_object(), *function;
	char place[64];

	for (size_t i = 0; i < last; i += 2) {
		char call[96];

		function = json_array_get(file->functions, in_stack(file, i));
		snprintf(place, sizeof(place), "%lld %lld", (long long)in_stack(file, i + 1),
			 (long long)in_stack(file, i + 2));
		snprintf(call, sizeof(call), "%lld %s", (long long)in_stack(file, i), place);
		if (json_object_get(seen, call))
			continue;
		json_object_set_new(seen, call, json_true());
		add_costs(file, json_object_get(function, "calls"), place, entry);
	}
	json_decref(seen);
	function = json_array_get(file->functions, in_stack(file, last));
	snprintf(place, sizeof(place), "%lld", (long long)in_stack(file, last + 1));
	add_costs(file, json_object_get(function, "lines"), place, entry);
	for (size_t i = 0; i < file->nr_measures; i++)
		file->sums[i] += integer(entry, file->measures[i].member);
	json_array_clear(file->stack);
}

static void add_entries(struct callgrind_file *file, const json_t *record)
{
	const json_t *rest = json_object_get(record, "rest");
	json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(record, "entries"), i, entry) {
		calls_walk(file->calls, entry, add_step, file);
		add_stack(file, entry);
	}
	if (!rest)
		return;
	add_step(file, &(struct step){.name = "[others]"});
	add_stack(file, rest);
}

/* --- text ------------------------------------------------------------------------------------- */

/* Appends a name without characters that would end its line. */
static void put_name(struct text *text, const char *name)
{
	size_t from = text->used;

	text_add(text, "%s", name);
	for (; from < text->used; from++)
		if (iscntrl((unsigned char)text->bytes[from]))
			text->bytes[from] = '?';
}

/* Appends "fl=(2) demo.c": a name by its number, and in full where it comes first. */
static void put_numbered(struct text *text, json_t *names, const char *what, const char *name)
{
	json_t *number = json_object_get(names, name);

	if (number) {
		text_add(text, "%s=(%lld)\n", what, (long long)json_integer_value(number));
		return;
	}
	number = json_integer(json_object_size(names) + 1);
	json_object_set_new(names, name, number);
	text_add(text, "%s=(%lld) ", what, (long long)json_integer_value(number));
	put_name(text, name);
	text_add(text, "\n");
}

/* Functions of one name in several files are different ones, so their numbers are their indexes. */
static void put_function(struct text *text, json_t *told, const char *what, json_int_t index,
			 const json_t *function)
{
	char key[24];

	snprintf(key, sizeof(key), "%lld", (long long)index);
	text_add(text, "%s=(%lld)", what, (long long)index + 1);
	if (!json_object_get(told, key)) {
		json_object_set_new(told, key, json_true());
		text_add(text, " ");
		put_name(text, string(function, "name"));
	}
	text_add(text, "\n");
}

static void put_costs(struct text *text, long long line, const json_t *costs)
{
	json_t *cost;
	size_t i;

	text_add(text, "%lld", line);
	json_array_foreach(costs, i, cost)
		text_add(text, " %lld", (long long)json_integer_value(cost));
	text_add(text, "\n");
}

struct callgrind_names {
	json_t *modules, *files, *functions;
};

static void put_calls(struct text *text, struct callgrind_names *names, const json_t *functions,
		      json_t *calls)
{
	const char *place;
	json_t *costs;

	json_object_foreach(calls, place, costs) {
		char *end;
		long long line = strtoll(place, &end, 10);
		json_int_t index = strtoll(end, NULL, 10);
		const json_t *callee = json_array_get(functions, index);

		put_numbered(text, names->modules, "cob", string(callee, "module"));
		put_numbered(text, names->files, "cfi", string(callee, "file"));
		put_function(text, names->functions, "cfn", index, callee);
		text_add(text, "calls=%lld 0\n", (long long)json_integer_value(json_array_get(costs, 0)));
		put_costs(text, line, costs);
	}
}

static void put_functions(struct text *text, const json_t *functions)
{
	struct callgrind_names names = {json_object(), json_object(), json_object()};
	json_t *function, *costs;
	const char *line;
	size_t i;

	json_array_foreach(functions, i, function) {
		text_add(text, "\n");
		put_numbered(text, names.modules, "ob", string(function, "module"));
		put_numbered(text, names.files, "fl", string(function, "file"));
		put_function(text, names.functions, "fn", i, function);
		json_object_foreach(json_object_get(function, "lines"), line, costs)
			put_costs(text, strtoll(line, NULL, 10), costs);
		put_calls(text, &names, functions, json_object_get(function, "calls"));
	}
	json_decref(names.modules);
	json_decref(names.files);
	json_decref(names.functions);
}

/* The events line separates names by spaces. */
static void put_events(struct text *text, const struct callgrind_file *file, const json_t *event)
{
	text_add(text, "events:");
	for (size_t i = 0; i < file->nr_measures; i++) {
		struct measure measure = measure_of_event(&file->measures[i], event);
		char name[VISIBLE_MAX * 160];

		visible(name, sizeof(name), measure.type);
		text_add(text, " ");
		for (const char *at = name; *at; at++)
			text_add(text, "%c", isspace((unsigned char)*at) ? '_' : *at);
	}
	text_add(text, "\nsummary:");
	for (size_t i = 0; i < file->nr_measures; i++)
		text_add(text, " %lld", (long long)file->sums[i]);
	text_add(text, "\n");
}

/* callgrind_annotate and KCachegrind show these lines. */
static void put_remark(void *to, const struct remark *remark)
{
	text_add(to, "desc: %s: ", remark->title);
	put_name(to, remark->text);
	text_add(to, "\n");
}

static void put_file(struct text *text, const struct stream *stream, const json_t *record,
		     const struct callgrind_file *file)
{
	char *title = profile_title(stream);

	text_add(text, "# callgrind format\nversion: 1\ncreator: nhmtap\ncmd: ");
	put_name(text, title);
	text_add(text, "\n");
	remarks_of(record, put_remark, text);
	text_add(text, "positions: line\n");
	put_events(text, file, profile_event(stream, record));
	put_functions(text, file->functions);
	free(title);
}

static int write_callgrind(struct stream *stream, const json_t *record)
{
	struct callgrind_file file = {.calls = &stream->calls, .measures = measures_of(record)};
	struct text text = {0};
	int err;

	if (!file.measures)
		return 0;
	while (file.nr_measures < MEASURES && file.measures[file.nr_measures].member)
		file.nr_measures++;
	file.known = json_object();
	file.functions = json_array();
	file.stack = json_array();
	add_entries(&file, record);
	put_file(&text, stream, record, &file);
	json_decref(file.known);
	json_decref(file.functions);
	json_decref(file.stack);
	err = sink_put(&stream->sink, text.bytes, text.used);
	free(text.bytes);
	return err;
}

static const struct format callgrind = {
	.name = "callgrind",
	.help = "costs of lines and calls, for KCachegrind; implies -g",
	.adds_up = true,
	.commands = COMMANDS_OF_STACKS,
	.keys = "stack",
	.whole = true,
	.media = "text/plain; charset=utf-8",
	.ending = ".callgrind",
	.check = profile_check,
	.write = write_callgrind,
};
REGISTER_FORMAT(callgrind);
