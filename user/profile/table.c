// SPDX-License-Identifier: GPL-2.0-only
/* The entries of a profile with stacks: their keys, and below them the functions, a line each, from the
 * innermost. */
#include <string.h>

#include "output/calls.h"
#include "output/rows.h"
#include "output/table.h"

#define INDENT 22 /* columns: samples and share */

static void add_line(struct text *text, const char *words)
{
	text_add(text, "%*s%s\n", INDENT + 2, "", words);
}

static void add_frame(struct text *text, const json_t *frame)
{
	char name[CALLS_NAME_MAX];

	for (size_t i = 0; i < calls_in(frame); i++) {
		struct call call = calls_at(frame, i);

		calls_name(&call, name, sizeof(name));
		if (call.inlined)
			strncat(name, " (inlined)", sizeof(name) - strlen(name) - 1);
		add_line(text, name);
	}
}

static void add_keys(struct text *text, const json_t *entry)
{
	char content[256];
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)entry, name, value)
	{
		if (!row_is_key(name) || !strcmp(name, "stack") || !strcmp(name, "stack_lost") ||
		    !strcmp(name, "truncated"))
			continue;
		row_cell(value, content, sizeof(content));
		text_add(text, "  %s", content);
	}
	text_add(text, "\n");
}

static void rows_of_stacks(struct text *text, const struct calls *calls, const json_t *entries,
			   json_int_t total)
{
	char number[40];
	json_t *entry, *id;
	size_t i, j;

	json_array_foreach(entries, i, entry)
	{
		json_int_t samples = integer(entry, "samples");

		text_add(text, "%12s %6.1f%%", row_grouped(samples, number, sizeof(number)),
			 row_share(samples, total));
		add_keys(text, entry);
		json_array_foreach(json_object_get(entry, "stack"), j, id)
			add_frame(text, calls_frame(calls, json_integer_value(id)));
		if (*string(entry, "stack_lost"))
			add_line(text, "(its stack is lost)");
		if (json_object_get(entry, "truncated"))
			add_line(text, "…");
	}
}

static void profile_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *samples = json_object_get(record, "samples");
	const json_t *entries = json_object_get(record, "entries");
	json_int_t total = integer(samples, "aggregated");
	char number[40];

	row_time(text, stream, record);
	text_add(text, "%s: %s samples in %.3f s\n", string(record, "event"),
		 row_grouped(total, number, sizeof(number)), integer(record, "duration_ns") / 1e9);
	if (json_object_get(record, "stacks"))
		rows_of_stacks(text, &stream->calls, entries, total);
	else if (json_array_size(entries))
		rows_of_entries(text, entries, total);
	row_of_rest(text, json_object_get(record, "rest"), total);
	text_add(text, "\n");
}

REGISTER_TABLE(profile, profile_table);
