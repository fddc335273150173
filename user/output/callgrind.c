// SPDX-License-Identifier: GPL-2.0-only
/*
 * A profile in Callgrind's format (valgrind's manual, "Callgrind Format Specification") for KCachegrind and
 * callgrind_annotate: what each instruction and line of a function costs by itself, and what its calls cost,
 * in each event of the run.
 *
 *     ob=(1) /usr/bin/demo
 *     fl=(1) demo.c
 *     fn=(3) work
 *     0x1180 17 4 4000
 *     cob=(1)
 *     cfi=(1)
 *     cfn=(4) step
 *     calls=20 0x0 0
 *     0x1190 19 20 20000
 *
 * Samples do not count calls: `calls` has the samples in what was called. Names always come with a number, so
 * a name that looks like one is no trouble.
 *
 * Readers add up what a function costs by itself and what its calls cost. By recursion, a function may be in
 * a stack several times: then only its innermost place has the costs of a call, and those of the others are
 * 0. So each stack is once in the sum of each of its functions.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/visible.h"
#include "output/member.h"
#include "output/profiles.h"
#include "output/remarks.h"
#include "output/text.h"

/* What a stream has gathered. The costs of a place are a list: the number of calls, and those of each column.
 */
struct callgrind_file {
	const struct calls *calls;	/* of the record that is taken in */
	const struct measure *measures; /* its values */
	size_t first;			/* their first column */
	struct profile_columns columns;
	json_t *known;	   /* {module, file and name: index of the function} */
	json_t *functions; /* [{module, file, name, lines: {place: costs}, calls: {"place callee": costs}}] */
	json_t *stack;	   /* that is being made: [{function, place}, ...], the outermost first */
	json_t *remarks;   /* {event: {line: true}} */
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

/* A place is an instruction's offset in its file, and a line: "0x1180 17". */
static void add_step(void *of, const struct step *step)
{
	struct callgrind_file *file = of;

	json_array_append_new(
		file->stack,
		json_pack("{sI so}", "function", function_of(file, step), "place",
			  json_sprintf("0x%llx %lld",
				       step->call ? (long long)profile_address(step->call->frame, 0) : 0,
				       step->call ? (long long)step->call->line : 0)));
}

static void add_cost(json_t *costs, size_t i, json_int_t cost)
{
	while (json_array_size(costs) <= i)
		json_array_append_new(costs, json_integer(0));
	json_integer_set(json_array_get(costs, i),
			 count_sum(json_integer_value(json_array_get(costs, i)), cost));
}

/* The value of a member, which is made if there is none. */
static json_t *member_of(json_t *object, const char *name, json_t *(*make)(void))
{
	json_t *value = json_object_get(object, name);

	if (!value)
		json_object_set_new(object, name, value = make());
	return value;
}

static void add_costs(const struct callgrind_file *file, json_t *costs, const json_t *entry)
{
	for (size_t i = 0; i < MEASURES && file->measures[i].member; i++)
		add_cost(costs, 1 + file->first + i, integer(entry, file->measures[i].member));
}

/* Whether a text is seen for the first time. */
static bool is_new(json_t *seen, const char *text)
{
	return !json_object_get(seen, text) && !json_object_set_new(seen, text, json_true());
}

/* Adds the costs of an entry to the innermost function of the stack, and to each call that leads there. */
static void add_stack(struct callgrind_file *file, const json_t *entry)
{
	json_t *seen = json_object(), *within = json_object();
	size_t nr = json_array_size(file->stack);

	for (size_t i = nr; i--;) {
		const json_t *step = json_array_get(file->stack, i),
			     *inner = json_array_get(file->stack, i + 1);
		json_int_t index = integer(step, "function"), callee = integer(inner, "function");
		const json_t *function = json_array_get(file->functions, index);
		char name[24], way[160];
		json_t *costs;
		bool innermost;

		snprintf(name, sizeof(name), "%lld", (long long)index);
		innermost = is_new(within, name);
		if (!inner) {
			add_costs(file,
				  member_of(json_object_get(function, "lines"), string(step, "place"),
					    json_array),
				  entry);
			continue;
		}
		snprintf(way, sizeof(way), "%lld %s %lld", (long long)index, string(step, "place"),
			 (long long)callee);
		costs = member_of(json_object_get(function, "calls"), strchr(way, ' ') + 1, json_array);
		if (is_new(seen, way))
			add_cost(costs, 0, integer(entry, file->measures[0].member));
		if (innermost)
			add_costs(file, costs, entry);
	}
	json_decref(seen);
	json_decref(within);
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

static void put_costs(struct text *text, const char *place, size_t size, const json_t *costs, size_t columns)
{
	text_add(text, "%.*s", (int)size, place);
	for (size_t i = 1; i <= columns; i++)
		text_add(text, " %lld", (long long)json_integer_value(json_array_get(costs, i)));
	text_add(text, "\n");
}

struct callgrind_names {
	json_t *modules, *files, *functions;
};

static void put_calls(struct text *text, struct callgrind_names *names, const json_t *functions,
		      json_t *calls, size_t columns)
{
	const char *way;
	json_t *costs;

	json_object_foreach(calls, way, costs) {
		const char *end = strrchr(way, ' ');
		json_int_t index = strtoll(end, NULL, 10);
		const json_t *callee = json_array_get(functions, index);

		put_numbered(text, names->modules, "cob", string(callee, "module"));
		put_numbered(text, names->files, "cfi", string(callee, "file"));
		put_function(text, names->functions, "cfn", index, callee);
		text_add(text, "calls=%lld 0x0 0\n", (long long)json_integer_value(json_array_get(costs, 0)));
		put_costs(text, way, end - way, costs, columns);
	}
}

static void put_functions(struct text *text, const struct callgrind_file *file)
{
	struct callgrind_names names = {json_object(), json_object(), json_object()};
	size_t columns = profile_columns_nr(&file->columns), i;
	json_t *function, *costs;
	const char *place;

	json_array_foreach(file->functions, i, function) {
		text_add(text, "\n");
		put_numbered(text, names.modules, "ob", string(function, "module"));
		put_numbered(text, names.files, "fl", string(function, "file"));
		put_function(text, names.functions, "fn", i, function);
		json_object_foreach(json_object_get(function, "lines"), place, costs)
			put_costs(text, place, strlen(place), costs, columns);
		put_calls(text, &names, file->functions, json_object_get(function, "calls"), columns);
	}
	json_decref(names.modules);
	json_decref(names.files);
	json_decref(names.functions);
}

/* The sums over all functions, and the events line, which separates names by spaces. */
static void put_events(struct text *text, const struct callgrind_file *file)
{
	json_t *sums = json_array(), *function, *costs;
	size_t columns = profile_columns_nr(&file->columns), nr;
	const char *place;

	text_add(text, "events:");
	for (size_t i = 0; i < columns; i++) {
		char shown[VISIBLE_MAX * 160], *name = profile_column_name(&file->columns, i);

		visible(shown, sizeof(shown), name);
		free(name);
		text_add(text, " ");
		for (const char *at = shown; *at; at++)
			text_add(text, "%c", isspace((unsigned char)*at) ? '_' : *at);
	}
	json_array_foreach(file->functions, nr, function)
		json_object_foreach(json_object_get(function, "lines"), place, costs)
			for (size_t i = 1; i <= columns; i++)
				add_cost(sums, i, json_integer_value(json_array_get(costs, i)));
	text_add(text, "\n");
	put_costs(text, "summary:", strlen("summary:"), sums, columns);
	json_decref(sums);
}

/* callgrind_annotate and KCachegrind show these lines. */
static void add_remark(void *to, const struct remark *remark)
{
	struct text line = {0};

	text_add(&line, "%s: ", remark->title);
	put_name(&line, remark->text);
	json_object_set_new(to, line.bytes, json_true());
	free(line.bytes);
}

static void put_remarks(struct text *text, const struct callgrind_file *file)
{
	const char *event, *line;
	json_t *lines, *said;

	json_object_foreach(file->remarks, event, lines)
		json_object_foreach(lines, line, said) {
			const char *words = strstr(line, ": ");

			text_add(text, "desc: %.*s", (int)(words - line), line);
			if (json_object_size(file->remarks) > 1) {
				text_add(text, ": ");
				put_name(text, event);
			}
			text_add(text, "%s\n", words);
		}
}

static void put_file(struct text *text, const struct stream *stream, const struct callgrind_file *file)
{
	char *title = profile_title(stream);

	text_add(text, "# callgrind format\nversion: 1\ncreator: nhmtap\ncmd: ");
	put_name(text, title);
	text_add(text, "\n");
	put_remarks(text, file);
	text_add(text, "positions: instr line\n");
	put_events(text, file);
	put_functions(text, file);
	free(title);
}

static struct callgrind_file *callgrind_gathering(struct stream *stream)
{
	struct callgrind_file *file = stream->own;

	if (!file) {
		file = stream->own = xcalloc(1, sizeof(*file));
		file->known = json_object();
		file->functions = json_array();
		file->stack = json_array();
		file->remarks = json_object();
	}
	return file;
}

static int take(struct stream *stream, const json_t *record)
{
	const struct measure *measures = measures_of(record);
	struct callgrind_file *file;

	if (!measures)
		return 0;
	file = callgrind_gathering(stream);
	file->calls = &stream->calls;
	file->measures = measures;
	file->first = profile_columns_of(&file->columns, stream, record);
	add_entries(file, record);
	remarks_of(record, add_remark, member_of(file->remarks, string(record, "event"), json_object));
	return 0;
}

static void release(struct stream *stream)
{
	struct callgrind_file *file = stream->own;

	if (!file)
		return;
	profile_columns_release(&file->columns);
	json_decref(file->known);
	json_decref(file->functions);
	json_decref(file->stack);
	json_decref(file->remarks);
	free(file);
	stream->own = NULL;
}

static int put_gathered(struct stream *stream)
{
	struct text text = {0};
	int err;

	if (!stream->own)
		return 0;
	put_file(&text, stream, stream->own);
	err = sink_put(&stream->sink, text.bytes, text.used);
	free(text.bytes);
	release(stream);
	return err;
}

static const struct format callgrind = {
	.name = "callgrind",
	.help = "costs of instructions, lines and calls, for KCachegrind; implies -g",
	.adds_up = true,
	.commands = COMMANDS_OF_STACKS,
	.keys = "stack",
	.whole = true,
	.media = "text/plain; charset=utf-8",
	.ending = ".callgrind",
	.check = profile_check_intervals,
	.write = take,
	.finish = put_gathered,
	.release = release,
};
REGISTER_FORMAT(callgrind);
