// SPDX-License-Identifier: GPL-2.0-only
#include "top/code.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "output/activities.h"
#include "output/calls.h"
#include "output/member.h"
#include "output/rows.h"

struct sampled_code {
	char *function;
	struct calls calls;
	struct activities activities;
	json_t *events;	     /* by their places in `activities`: [{"branches", "period": of all entries,
				"functions": {symbol: {place: entry}}}] */
	json_t *annotations; /* of what was taken in so far; NULL: to be made */
};

struct sampled_code *code_new(const char *function)
{
	struct sampled_code *code = xcalloc(1, sizeof(*code));

	*code = (struct sampled_code){.function = xstrdup(function), .events = json_array()};
	activities_begin(&code->activities);
	return code;
}

void code_release(struct sampled_code *code)
{
	if (!code)
		return;
	calls_release(&code->calls);
	activities_release(&code->activities);
	json_decref(code->events);
	json_decref(code->annotations);
	free(code->function);
	free(code);
}

/* --- samples ---------------------------------------------------------------------------------- */

static bool is_in_function(const struct sampled_code *code, const json_t *frame)
{
	char name[CALLS_NAME_MAX];

	for (size_t i = 0; i < calls_in(frame); i++) {
		struct call call = calls_at(frame, i);

		if (!strcmp(calls_name(&call, name, sizeof(name)), code->function))
			return true;
	}
	return false;
}

static json_t *object_at(json_t *parent, const char *name)
{
	json_t *child = json_object_get(parent, name);

	if (child)
		return child;
	child = json_object();
	json_object_set_new(parent, name, child);
	return child;
}

static void add_number(json_t *sum, const json_t *entry, const char *member)
{
	if (json_object_get(entry, member))
		json_object_set_new(sum, member,
				    json_integer(count_sum(integer(sum, member), integer(entry, member))));
}

static void add_place(json_t *functions, const json_t *frame, const json_t *entry)
{
	static const char *const numbers[] = {"samples", "period", "latency_sum"};
	struct call outermost = calls_at(frame, calls_in(frame) - 1);
	json_t *key = json_sprintf("%s\n%s\n%s", string(frame, "module"), string(frame, "offset"),
				   string(entry, "source"));
	json_t *sum = object_at(object_at(functions, outermost.symbol), json_string_value(key) ?: "");

	json_decref(key);
	json_object_set(sum, "code", (json_t *)frame);
	json_object_set(sum, "source", json_object_get(entry, "source"));
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		add_number(sum, entry, numbers[i]);
	if (json_object_get(entry, "count"))
		json_object_set_new(
			sum, "samples",
			json_integer(count_sum(integer(sum, "samples"), integer(entry, "count"))));
}

static void take_part(void *context, const json_t *record)
{
	struct sampled_code *code = context;
	json_t *entries = json_object_get(record, "entries"), *event, *entry;
	const struct measurement *measured;
	char *title, *name;
	size_t i;

	if (!json_array_size(entries))
		return;
	title = row_title(record, string(record, "event"));
	name = xasprintf("%s%s", title, strcmp(calls_kind(record), "range") ? "" : ", kind range");
	free(title);
	measured = measurement_in(&code->activities, name, record);
	free(name);
	if (measured->place == json_array_size(code->events))
		json_array_append_new(code->events, json_object());
	event = json_array_get(code->events, measured->place);
	if (!strcmp(string(record, "type"), "branch"))
		json_object_set_new(event, "branches", json_true());
	add_number(event, json_object_get(record, "rest"), "period");
	json_array_foreach(entries, i, entry) {
		const json_t *frame = calls_own_code(&code->calls, entry);

		add_number(event, entry, "period");
		if (calls_at(frame, calls_in(frame) - 1).symbol && json_object_get(frame, "offset") &&
		    is_in_function(code, frame))
			add_place(object_at(event, "functions"), frame, entry);
	}
	json_decref(code->annotations);
	code->annotations = NULL;
}

void code_take(struct sampled_code *code, const json_t *record)
{
	if (!strcmp(string(record, "type"), "frames"))
		calls_define(&code->calls, record);
	calls_each_part(record, take_part, code);
}

/* --- code ------------------------------------------------------------------------------------- */

/* A record as the samples of one event would be, of which the other entries are one. */
static json_t *record_of(const char *name, const json_t *event, const json_t *places)
{
	json_t *entries = json_array(), *entry;
	json_int_t all = integer(event, "period"), own = 0;
	const char *key;

	json_object_foreach((json_t *)places, key, entry) {
		json_array_append(entries, entry);
		own = count_sum(own, integer(entry, "period"));
	}
	/* In records of others, parts may be more than the whole, or negative. */
	json_array_append_new(entries, json_pack("{sI}", "period", all > own && own >= 0 ? all - own : 0));
	return json_pack("{ss so}", "event", name, "entries", entries);
}

static json_t *annotate_all(const struct sampled_code *code, struct annotator *annotator)
{
	json_t *annotations = json_array(), *event, *places;
	const char *function;
	size_t place;

	json_array_foreach(code->events, place, event) {
		char *name = measurement_title(&code->activities, code->activities.list[place]);

		json_object_foreach(json_object_get(event, "functions"), function, places) {
			json_t *record = record_of(name, event, places);
			json_t *list = annotate(annotator, function, record), *annotation;
			size_t i;

			json_array_foreach(list, i, annotation)
				json_object_set(annotation, "branches", json_object_get(event, "branches"));
			json_array_extend(annotations, list);
			json_decref(list);
			json_decref(record);
		}
		free(name);
	}
	return annotations;
}

void code_print(struct sampled_code *code, struct annotator *annotator, struct text *text)
{
	json_t *annotation;
	size_t i;

	if (!code->annotations)
		code->annotations = annotate_all(code, annotator);
	json_array_foreach(code->annotations, i, annotation)
		annotation_print(text, annotation);
}
