// SPDX-License-Identifier: GPL-2.0-only
/* For people: one block a record, columns aligned, digits grouped. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "output/output.h"
#include "output/rows.h"
#include "output/table.h"
#include "output/text.h"

/* --- start, error, end ------------------------------------------------------------------------ */

/* A line for each group: its events with the counters that the plan has for them. */
static void add_placement(struct text *text, const json_t *events)
{
	json_int_t before = -1;
	size_t i;
	json_t *event;

	json_array_foreach(events, i, event)
	{
		const json_t *group = json_object_get(event, "group");
		bool joins = i && group && json_integer_value(group) == before;
		const char *counter = string(event, "counter");

		text_add(text, "%s%s%s%s%s",
			 joins ? ", "
			 : i   ? "\n# "
			       : "# ",
			 string(event, "name"), *counter ? " (" : "", counter, *counter ? ")" : "");
		before = group ? json_integer_value(group) : -1;
	}
	text_add(text, "\n");
}

static void start_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const char *why = string(record, "default_event_why");

	if (*why)
		text_add(text, "# %s\n", why);
	if (stream->verbose && json_object_get(record, "events"))
		add_placement(text, json_object_get(record, "events"));
}

static void end_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *lost = json_object_get(json_object_get(record, "samples"), "lost");
	const char *cause;
	char number[40];
	json_t *count;

	json_object_foreach((json_t *)lost, cause, count) if (json_integer_value(count))
		text_add(text, "# %s samples are not in the tables: %s\n",
			 row_grouped(json_integer_value(count), number, sizeof(number)), cause);
}

static void hotplug_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const char *change = string(record, "change");

	row_time(text, stream, record);
	text_add(text, "# CPU %lld ", (long long)integer(record, "cpu"));
	if (!strcmp(change, "refused"))
		text_add(text, "is online, and not counted: %s\n", string(record, "why"));
	else
		text_add(text, "%s\n", !strcmp(change, "online") ? "is online, and counted" : "went offline");
}

static void target_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const char *change = string(record, "change");

	row_time(text, stream, record);
	text_add(text, "# cgroup %s ", string(record, "cgroup"));
	if (!strcmp(change, "refused"))
		text_add(text, "is there, and not measured: %s\n", string(record, "why"));
	else
		text_add(text, "%s\n", !strcmp(change, "appeared") ? "is there, and measured" : "has gone");
}

/* --- by type ---------------------------------------------------------------------------------- */

REGISTER_TABLE(start, start_table);
REGISTER_TABLE(end, end_table);
REGISTER_TABLE(hotplug, hotplug_table);
REGISTER_TABLE(target, target_table);

/* The linker defines these for a section whose name is an identifier. */
extern const struct table *const __start_tables[], *const __stop_tables[];

/* Records that say which section they are in come one section after the other. */
static void begin_section(struct text *text, struct stream *stream, const char *section)
{
	if (!*section || !strcmp(section, stream->section))
		return;
	text_add(text, "%s%s\n", stream->section[0] ? "\n" : "", section);
	snprintf(stream->section, sizeof(stream->section), "%.39s", section);
}

/* Only the table's own steering of the screen reaches the terminal. */
static void add_part(struct text *text, const struct stream *stream, const char *part)
{
	struct text screen = {0};

	row_screen(&screen, stream);
	if (screen.used && !strncmp(part, screen.bytes, screen.used)) {
		text_add(text, "%s", screen.bytes);
		part += screen.used;
	}
	text_add_visible(text, part);
	free(screen.bytes);
}

/* An error and a warning have no table: they are told in words, on stderr. */
static int write_table(struct stream *stream, const json_t *record)
{
	struct text text = {0};
	int err = 0;

	for (const struct table *const *at = __start_tables; at < __stop_tables; at++) {
		const struct table *table = *at;
		struct text part = {0};

		if (strcmp(table->type, string(record, "type")))
			continue;
		begin_section(&text, stream,
			      table->section ? table->section(stream, record) : string(record, "section"));
		table->add(&part, stream, record);
		if (part.used)
			add_part(&text, stream, part.bytes);
		free(part.bytes);
	}
	if (text.used)
		err = sink_put(&stream->sink, text.bytes, text.used);
	free(text.bytes);
	return err;
}

static const struct format table = {
	.name = "table",
	.help = "for people; the default on a terminal",
	.people = true,
	.write = write_table,
};
REGISTER_FORMAT(table);
