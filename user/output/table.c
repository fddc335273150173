// SPDX-License-Identifier: GPL-2.0-only
/* The format for people: a block of text for each record, with aligned columns and grouped digits. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/array.h"
#include "base/memory.h"
#include "output/hints.h"
#include "output/output.h"
#include "output/remarks.h"
#include "output/rows.h"
#include "output/table.h"
#include "output/text.h"

/* --- start, error, end ------------------------------------------------------------------------ */

/* Adds a line for each group of events, with the counters that the plan has assigned to them. */
static void add_placement(struct text *text, const json_t *events)
{
	json_int_t before = -1;
	size_t i;
	json_t *event;

	json_array_foreach(events, i, event) {
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

static void add_emulated(struct text *text, const json_t *emulated)
{
	text_add(text, "# emulated machine (%s, version %s): cycles and latencies are a model's\n",
		 string(emulated, "model"), string(emulated, "version"));
}

static void start_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const char *why = string(record, "default_event_why");
	const json_t *emulated = emulated_host(record);

	/* Of several start records, in the first one: members of a record and of its copy are the same
	 * objects. */
	if (emulated && emulated == emulated_host(stream->start))
		add_emulated(text, emulated);
	if (*why)
		text_add(text, "# %s\n", why);
	lines_of_lateness(text, record);
	if (stream->verbose && json_object_get(record, "events"))
		add_placement(text, json_object_get(record, "events"));
}

static void add_line(void *to, const char *text)
{
	text_add(to, "# %s\n", text);
}

static void end_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *lost = json_object_get(json_object_get(record, "samples"), "lost");
	const char *cause;
	char number[40];
	json_t *count;

	json_object_foreach((json_t *)lost, cause, count)
		if (json_integer_value(count))
			text_add(text, "# %s %s not in the tables: %s\n",
				 row_grouped(json_integer_value(count), number, sizeof(number)),
				 json_integer_value(count) == 1 ? "sample is" : "samples are", cause);
	names_doubts(json_object_get(record, "names"), "have no function name", add_line, text);
	/* A user who started COMMAND sees that it has ended, so that is not said. */
	if (!strcmp(string(record, "reason"), "exited") && !json_object_get(record, "command"))
		text_add(text, "# the processes that were measured have ended\n");
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

static void gap_table(struct text *text, const struct stream *stream, const json_t *record)
{
	char number[40];

	row_time(text, stream, record);
	text_add(text, "# %s records are missing: %s\n",
		 row_grouped(integer(record, "records"), number, sizeof(number)), string(record, "cause"));
}

static void reload_table(struct text *text, const struct stream *stream, const json_t *record)
{
	row_time(text, stream, record);
	text_add(text, "# CONFIG was read again, and %s\n", string(record, "outcome"));
}

/* --- by type ---------------------------------------------------------------------------------- */

REGISTER_TABLE(start, start_table);
REGISTER_TABLE(end, end_table);
REGISTER_TABLE(hotplug, hotplug_table);
REGISTER_TABLE(target, target_table);
REGISTER_TABLE(gap, gap_table);
REGISTER_TABLE(reload, reload_table);

/* The linker defines these for a section whose name is an identifier. */
extern const struct table *const __start_tables[], *const __stop_tables[];

/* What the stream shows now. */
struct shown {
	char section[40]; /* that was begun last */
	bool emulated;	  /* a record outside of runs has said that the machine is */
	char since[32];	  /* start_time of the interval on the screen */
	int rows;	  /* number of lines that it takes there */
	struct sharing sharing;
};

static struct shown *shown_by(struct stream *stream)
{
	if (!stream->own)
		stream->own = xcalloc(1, sizeof(struct shown));
	return stream->own;
}

static void release_shown(struct stream *stream)
{
	free(stream->own);
}

/* Records with a section are printed below its heading, which is printed when the section changes. */
static void begin_section(struct text *text, struct shown *shown, const char *section)
{
	if (!*section || !strcmp(section, shown->section))
		return;
	text_add(text, "%s%s\n", shown->section[0] ? "\n" : "", section);
	snprintf(shown->section, sizeof(shown->section), "%.39s", section);
}

/* Says it above the first record of those that belong to no run, which have no start record. */
static void tell_emulated(struct text *text, struct shown *shown, const json_t *record)
{
	const json_t *emulated = json_object_get(record, "emulated");

	if (emulated && !shown->emulated)
		add_emulated(text, emulated);
	shown->emulated = shown->emulated || emulated;
}

/* The size of the terminal that a stream goes to, which may not know it. */
static struct winsize size_of_terminal(const struct stream *stream)
{
	struct winsize size = {0};

	if (ioctl(stream->sink.fd, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		size = (struct winsize){.ws_row = 24, .ws_col = TEXT_WIDTH};
	return size;
}

/* --- a screen --------------------------------------------------------------------------------- */

/* Cuts each line at this many columns. */
static void cut_columns(struct text *text, int most)
{
	size_t kept = 0;
	int columns = 0;

	for (size_t i = 0; i < text->used; i++) {
		char byte = text->bytes[i];

		columns = byte == '\n' ? 0 : columns + ((byte & 0xc0) != 0x80);
		if (columns <= most)
			text->bytes[kept++] = byte;
	}
	text->used = kept;
}

/* Cuts the text after this many lines. Returns the number of lines it then has. */
static int cut_rows(struct text *text, int most)
{
	int rows = 0;

	for (size_t i = 0; i < text->used; i++) {
		if (text->bytes[i] != '\n' || ++rows < most)
			continue;
		text->used = i + 1;
		break;
	}
	return rows;
}

/* Inserts escape sequences: each line erases the rest of its row, and the last one everything below. The
 * screen is not cleared, because terminals save a cleared screen in their scrollback. */
static void write_over(struct text *text)
{
	struct text result = {0};

	for (size_t i = 0; i < text->used; i++)
		text_add(&result, text->bytes[i] == '\n' ? "\033[K%c" : "%c", text->bytes[i]);
	text_add(&result, "\033[J");
	free(text->bytes);
	*text = result;
}

/* Draws an interval from the top of the screen, cut to the lines that fit. Records that belong to no interval
 * are printed below. */
static void put_on_screen(struct text *text, struct stream *stream, const json_t *record)
{
	const char *since = string(record, "start_time");
	struct winsize size = size_of_terminal(stream);
	struct shown *shown = shown_by(stream);

	if (!*since || !text->used)
		return;
	if (strcmp(since, shown->since)) {
		snprintf(shown->since, sizeof(shown->since), "%.31s", since);
		shown->rows = 0;
		sink_put(&stream->sink, "\033[H", strlen("\033[H"));
	}
	if (shown->rows >= size.ws_row - 1) {
		text->used = 0;
		return;
	}
	cut_columns(text, size.ws_col);
	shown->rows += cut_rows(text, size.ws_row - 1 - shown->rows);
	write_over(text);
}

/* --- the format ------------------------------------------------------------------------------- */

/* Error and warning records are not printed here: they go to stderr. */
static int write_table(struct stream *stream, const json_t *record)
{
	struct text text = {0}, empty = {0};
	int err = 0;

	if (stream->sink.terminal)
		empty = (struct text){.width = size_of_terminal(stream).ws_col, .ascii = !text_takes_utf8()};
	text.ascii = empty.ascii;
	tell_emulated(&text, shown_by(stream), record);
	for (const struct table *const *at = __start_tables; at < __stop_tables; at++) {
		const struct table *table = *at;
		struct text part = empty;

		if (strcmp(table->type, string(record, "type")))
			continue;
		begin_section(&text, shown_by(stream),
			      table->section ? table->section(stream, record) : string(record, "section"));
		table->add(&part, stream, record);
		if (part.used)
			text_add_visible(&text, part.bytes);
		free(part.bytes);
	}
	sharing_take(&shown_by(stream)->sharing, record);
	if (stream->hints && empty.width && !strcmp(string(record, "type"), "end"))
		hint_add(&text, string(stream->start, "command"), stream->start, &shown_by(stream)->sharing);
	if (empty.ascii)
		text_to_ascii(&text);
	if (empty.width && text.used && !stream->live)
		text_fit(&text, empty.width);
	if (stream->live)
		put_on_screen(&text, stream, record);
	if (text.used)
		err = sink_put(&stream->sink, text.bytes, text.used);
	free(text.bytes);
	return err;
}

static const struct format table = {
	.name = "table",
	.help = "a table to read; the default on a terminal",
	.people = true,
	.write = write_table,
	.release = release_shown,
};
REGISTER_FORMAT(table);
