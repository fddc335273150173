// SPDX-License-Identifier: GPL-2.0-only
#include "view/heading.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/visible.h"
#include "output/member.h"
#include "output/remarks.h"
#include "output/rows.h"

#define WARNINGS_MOST 8

void heading_begin(struct heading_of_stream *heading, const char *name)
{
	*heading = (struct heading_of_stream){.name = name, .warnings = json_array()};
}

void heading_release(struct heading_of_stream *heading)
{
	json_decref(heading->start);
	json_decref(heading->warnings);
}

static void take_warning(void *of, const char *why)
{
	struct heading_of_stream *heading = of;

	if (*why && json_array_size(heading->warnings) < WARNINGS_MOST && !has_text(heading->warnings, why))
		json_array_append_new(heading->warnings, json_string(why));
}

void heading_take(struct heading_of_stream *heading, const json_t *record)
{
	const char *type = string(record, "type");

	if (integer(record, "part") > 1)
		return;
	if (!strcmp(type, "start") && !heading->start) {
		heading->start = json_deep_copy(record);
	} else if (!strcmp(type, "end")) {
		names_doubts(json_object_get(record, "names"), HAD_NO_NAME, take_warning, heading);
	} else if (!strcmp(type, "warning") || !strcmp(type, "error")) {
		take_warning(heading, string(record, "why"));
	} else if (!strcmp(type, "gap")) {
		heading->gaps = count_sum(heading->gaps, integer(record, "records"));
	}
}

/* Adds a line, and releases what it says. That is from records: a line feed in it would begin a line that
 * looks like one of the table. */
static void add_line(struct text *text, struct text line)
{
	size_t size = VISIBLE_MAX * line.used + 1;
	char *shown = xmalloc(size);

	visible(shown, size, line.bytes);
	text_add(text, "# %s\n", shown);
	free(shown);
	free(line.bytes);
}

/* The command that was measured, or what else was. */
static void add_target(struct text *line, const json_t *start)
{
	const json_t *target = json_object_get(start, "target"),
		     *words = json_object_get(target, "process.command_args");
	const char *key;
	json_t *value;
	size_t i;

	json_array_foreach(words, i, value)
		if (i < 12)
			text_add(line, " %.100s", json_string_value(value) ?: "");
	if (json_array_size(words))
		return;
	json_object_foreach((json_t *)target, key, value)
		if (json_is_string(value))
			text_add(line, " %s %.100s", key, json_string_value(value));
}

static void add_start(struct text *text, const json_t *start)
{
	const json_t *host = json_object_get(start, "host"), *emulated = emulated_host(start);
	struct text command = {0}, where = {0}, model = {0};

	text_add(&command, "nhmtap %s:", string(start, "command"));
	add_target(&command, start);
	add_line(text, command);
	text_add(&where, "%.19s UTC, %s, Linux %s", string(start, "time"),
		 string(json_object_get(host, "cpu"), "model_name"), string(host, "kernel"));
	add_line(text, where);
	if (emulated) {
		text_add(&model, "emulated machine (%s, version %s): cycles and latencies are a model's",
			 string(emulated, "model"), string(emulated, "version"));
		add_line(text, model);
	}
	lines_of_lateness(text, start);
}

void heading_print(const struct heading_of_stream *heading, struct text *text)
{
	const char *early = stored_early_end(&heading->end);
	struct text line = {0};
	json_t *warning;
	size_t i;

	if (heading->name) {
		text_add(&line, "%s:", heading->name);
		add_line(text, line);
	}
	if (heading->start)
		add_start(text, heading->start);
	if (*early)
		text_add(text, "# %s\n", early);
	if (heading->gaps)
		text_add(text, "# %lld records are missing, because an output was too slow\n",
			 (long long)heading->gaps);
	json_array_foreach(heading->warnings, i, warning) {
		line = (struct text){0};
		text_add(&line, "%s", json_string_value(warning));
		add_line(text, line);
	}
}
