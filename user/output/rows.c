// SPDX-License-Identifier: GPL-2.0-only
#include "output/rows.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/visible.h"
#include "output/share.h"
#include "output/table.h"

/* 1234567 → "1,234,567", in every locale. */
const char *row_grouped(json_int_t number, char *buffer, size_t size)
{
	char digits[32];
	size_t length = snprintf(digits, sizeof(digits), "%lld", (long long)number), used = 0;

	for (size_t i = 0; i < length && used + 2 < size; i++) {
		if (i && (length - i) % 3 == 0 && digits[i - 1] != '-')
			buffer[used++] = ',';
		buffer[used++] = digits[i];
	}
	buffer[used] = '\0';
	return buffer;
}

const char *row_grouped_real(double number, char *buffer, size_t size)
{
	char text[352], whole[352];
	size_t length = snprintf(text, sizeof(text), "%.3f", number) - 4;

	if (fabs(number) < 1e15) {
		row_grouped((json_int_t)strtoll(text, NULL, 10), whole, sizeof(whole));
		snprintf(buffer, size, "%s%s%s", *text == '-' && *whole != '-' ? "-" : "", whole,
			 text + length);
	} else {
		snprintf(buffer, size, "%s", text);
	}
	return buffer;
}

const char *row_counted(json_int_t number, const char *what, char *buffer, size_t size)
{
	size_t used, length = strlen(what);

	row_grouped(number, buffer, size);
	used = strlen(buffer);
	snprintf(buffer + used, size - used, " %s%s", what,
		 number == 1		   ? ""
		 : what[length - 1] == 'h' ? "es"
					   : "s");
	return buffer;
}

#define CELL_MAX 4096 /* longer than any name */

const char *row_name(const json_t *record, char *buffer, size_t size)
{
	static const char *const keys[] = {"node", "socket", "core", "cpu", "tid", "comm", "cgroup"};
	size_t used = 0;

	buffer[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(keys) && used < size; i++) {
		const json_t *value = json_object_get(record, keys[i]);
		char text[CELL_MAX];

		if (!value)
			continue;
		row_cell(value, text, sizeof(text));
		used += snprintf(buffer + used, size - used, "%s%s %s", used ? ", " : "",
				 !strcmp(keys[i], "cpu") ? "CPU" : keys[i], text);
	}
	return buffer;
}

/* "2026-01-31T23:59:59.123456789Z" becomes "23:59:59.123", at the beginning of each line of an interval. */
void row_time(struct text *text, const struct stream *stream, const json_t *record)
{
	const char *activity = string(record, "activity");

	if (stream->intervals)
		text_add(text, "%.12s  ", string(record, "time") + 11);
	if (stream->owner && !strcmp(stream->owner, SESSION) && *activity && strcmp(activity, SESSION))
		text_add(text, "%s  ", activity);
}

char *row_title(const json_t *record, const char *name)
{
	char keys[ROW_NAME_MAX];
	json_int_t nth = integer(record, "nth");
	char number[24] = "";

	row_name(record, keys, sizeof(keys));
	if (nth)
		snprintf(number, sizeof(number), " %lld", (long long)nth);
	return xasprintf("%s%s%s%s", name, number, *keys ? ", " : "", keys);
}

double row_share(json_int_t part, json_int_t whole)
{
	return whole ? 100.0 * part / whole : 0;
}

static double square_of(const json_t *entry)
{
	return share_square(calls_weight(entry), integer(entry, "samples"));
}

struct whole whole_of(const json_t *entries, const json_t *rest)
{
	struct whole whole = {calls_weight(rest), square_of(rest)};
	json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry) {
		whole.weight += calls_weight(entry);
		whole.squares += square_of(entry);
	}
	return whole;
}

void row_weight(struct text *text, const json_t *entry, const struct whole *whole)
{
	double share = whole->weight ? calls_weight(entry) / whole->weight : 0;
	double error = share_error(calls_weight(entry), square_of(entry), whole->weight, whole->squares);
	char number[40];

	text_add(text, "%12s %6.1f%%", row_grouped(integer(entry, "samples"), number, sizeof(number)),
		 100 * share);
	if (error > share / 10)
		text_add(text, " %5.1f", 100 * error);
	else
		text_add(text, " %5s", "");
}

/* "main (demo)", "main demo.c:17 (demo)", "step demo.c:3 in main (demo)" (it is inlined there),
 * "[libc.so.6+0x33080]" (a function without a name), "libc.so.6+0x3309d",
 * "[kernel] 0xffffffff81000000", "0x401136", "/usr/bin/demo". */
static void code_cell(const json_t *code, char *buffer, size_t size)
{
	const char *module = string(code, "module"), *symbol = string(code, "symbol");
	const char *inlined = string(json_array_get(json_object_get(code, "inlined"), 0), "symbol");
	char line[128] = "";

	if (*string(code, "file"))
		snprintf(line, sizeof(line), " %s:%lld", path_last(string(code, "file")),
			 (long long)integer(code, "line"));
	if (*line && *inlined)
		snprintf(buffer, size, "%s%s in %s (%s)", inlined, line, symbol, path_last(module));
	else if (*symbol)
		snprintf(buffer, size, "%s%s (%s)", symbol, line, path_last(module));
	else if (json_object_get(code, "offset") &&
		 !strcmp(string(code, "function_offset"), string(code, "offset")))
		snprintf(buffer, size, "[%s+%s]", path_last(module), string(code, "offset"));
	else if (json_object_get(code, "offset"))
		snprintf(buffer, size, "%s+%s", path_last(module), string(code, "offset"));
	else if (json_object_get(code, "address"))
		snprintf(buffer, size, "%s%s%s", path_last(module), *module ? " " : "",
			 string(code, "address"));
	else
		snprintf(buffer, size, "%s", module);
}

/* The value comes from a key, such as a name of a process, which may contain any character. */
void row_cell(const json_t *value, char *buffer, size_t size)
{
	char text[CELL_MAX];

	if (json_is_object(value))
		code_cell(value, text, sizeof(text));
	else if (json_is_string(value))
		snprintf(text, sizeof(text), "%s", json_string_value(value));
	else
		snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(value));
	visible(buffer, size, text);
}

bool row_is_key(const char *name)
{
	return strcmp(name, "samples") && strcmp(name, "period") && strncmp(name, "latency_", 8);
}

static int column_width(const json_t *entries, const char *name)
{
	int width = strlen(name);
	char text[256];
	json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry) {
		int own;

		if (!json_object_get(entry, name))
			continue;
		row_cell(json_object_get(entry, name), text, sizeof(text));
		own = text_columns(text);
		width = own > width ? own : width;
	}
	return width;
}

/* Removes the blanks that fill the last column. */
void row_end(struct text *text)
{
	while (text->used && text->bytes[text->used - 1] == ' ')
		text->used--;
	text_add(text, "\n");
}

#define WEIGHT_WIDTH 26 /* of the columns of row_weight() */
#define COLUMNS_MOST 16
#define SHORT_WIDTH  12 /* no column of names is made narrower */

/* The columns of keys of a table of entries. */
struct key_columns {
	const char *names[COLUMNS_MOST];
	int widths[COLUMNS_MOST];
	size_t nr;
};

/* Makes the widest columns narrower until a row fits, as long as they can be read. */
static void narrow_columns(struct key_columns *columns, int most)
{
	int sum = WEIGHT_WIDTH;

	for (size_t i = 0; i < columns->nr; i++)
		sum += 2 + columns->widths[i];
	for (; most && sum > most; sum--) {
		size_t widest = 0;

		for (size_t i = 1; i < columns->nr; i++)
			if (columns->widths[i] > columns->widths[widest])
				widest = i;
		if (!columns->nr || columns->widths[widest] <= SHORT_WIDTH)
			return;
		columns->widths[widest]--;
	}
}

static bool has_column(const struct key_columns *columns, const char *name)
{
	for (size_t i = 0; i < columns->nr; i++)
		if (!strcmp(columns->names[i], name))
			return true;
	return false;
}

/* Not every entry has all keys: some have no container. */
static struct key_columns columns_of_keys(const json_t *entries, int most)
{
	struct key_columns columns = {.nr = 0};
	const char *name;
	json_t *entry, *value;
	size_t i;

	json_array_foreach(entries, i, entry)
		json_object_foreach(entry, name, value) {
			if (!row_is_key(name) || columns.nr == COLUMNS_MOST || has_column(&columns, name))
				continue;
			columns.names[columns.nr] = name;
			columns.widths[columns.nr++] = column_width(entries, name);
		}
	narrow_columns(&columns, most);
	return columns;
}

static void add_key_cell(struct text *text, const char *content, int width)
{
	text_add(text, "  ");
	text_add_cell(text, content, width, false);
}

void rows_of_entries(struct text *text, const json_t *entries, const struct whole *whole)
{
	struct key_columns columns = columns_of_keys(entries, text->width);
	char content[256];
	json_t *entry;
	size_t i;

	text_add(text, ROW_WEIGHT_HEADINGS);
	for (i = 0; i < columns.nr; i++)
		add_key_cell(text, columns.names[i], columns.widths[i]);
	row_end(text);
	json_array_foreach(entries, i, entry) {
		row_weight(text, entry, whole);
		for (size_t column = 0; column < columns.nr; column++) {
			json_t *value = json_object_get(entry, columns.names[column]);

			content[0] = '\0';
			if (value)
				row_cell(value, content, sizeof(content));
			add_key_cell(text, content, columns.widths[column]);
		}
		row_end(text);
	}
}

void row_of_rest(struct text *text, const json_t *rest, const struct whole *whole)
{
	char others[40];

	if (!rest)
		return;
	row_weight(text, rest, whole);
	text_add(text, "  in %s more\n", row_grouped(integer(rest, "entries"), others, sizeof(others)));
}

/* --- stacks ----------------------------------------------------------------------------------- */

#define STACK_INDENT 30 /* width of the columns samples, share and ± */

static void add_line(struct text *text, const char *words)
{
	text_add(text, "%*s", STACK_INDENT, "");
	text_add_shortened(text, words, text->width ? text->width - STACK_INDENT : INT_MAX);
	text_add(text, "\n");
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

void row_stack(struct text *text, const struct calls *calls, const json_t *entry)
{
	json_t *id;
	size_t i;

	json_array_foreach(json_object_get(entry, "stack"), i, id)
		add_frame(text, calls_frame(calls, json_integer_value(id)));
	if (*string(entry, "stack_lost"))
		add_line(text, "(its stack is lost)");
	if (json_object_get(entry, "truncated"))
		add_line(text, "…");
}

static void keys_beside_stack(struct text *text, const json_t *entry)
{
	char content[256];
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)entry, name, value) {
		if (!row_is_key(name) || !strcmp(name, "stack") || !strcmp(name, "stack_lost") ||
		    !strcmp(name, "truncated"))
			continue;
		row_cell(value, content, sizeof(content));
		text_add(text, "  %s", content);
	}
	text_add(text, "\n");
}

void rows_of_stacks(struct text *text, const struct calls *calls, const json_t *entries,
		    const struct whole *whole)
{
	json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry) {
		row_weight(text, entry, whole);
		keys_beside_stack(text, entry);
		row_stack(text, calls, entry);
	}
}

/* The number of addresses that `names` of an end record, or its `data`, accounts for. */
static json_int_t names_total(const json_t *names)
{
	json_int_t total = integer(names, "named");
	const char *cause;
	json_t *count;

	json_object_foreach(json_object_get(names, "unnamed"), cause, count)
		total = count_sum(total, json_integer_value(count));
	return total;
}

/* The bytes that are shown of a reason from a file, which may be of any length. */
static int why_bytes(const char *why)
{
	return strlen(why) > 1000 ? whole_characters(why, 1000) : strlen(why);
}

char *lines_lacking(const json_t *names)
{
	const char *why = string(names, "lines_why");

	return *why ? xasprintf("some code lacks source lines or inlined functions: %.*s", why_bytes(why),
				why)
		    : NULL;
}

/* Why code has no name, by the members of `names.unnamed`. */
static const char *const unnamed_whys[][2] = {
	{"no_pid", "their process is not known"},
	{"no_mapping", "no file was mapped there"},
	{"no_file", "the file is gone, or is not visible from here"},
	{"no_symbol",
	 "the file has no symbol there (its debug package may have one), or the code was made at run "
	 "time and no perf map or jitdump names it"},
	{"refused",
	 "the file was not opened: it belongs to another user, is no regular file, or is too large"},
	{"failed", "reading the file failed"},
	{"no_room", "the memory for names has no room for the file's symbols (--memory raises it; nhmtap "
		    "symbolize has more)"},
	{"no_time", "there was no time left to read the file (nhmtap symbolize may add names)"},
};

static void take_line(void (*take)(void *to, const char *line), void *to, char *line)
{
	take(to, line);
	free(line);
}

/* Of stacks, each frame counts once, however many samples it has, so few may be much. */
void names_ambiguous(const json_t *names, void (*take)(void *to, const char *line), void *to)
{
	const json_t *of[] = {names, json_object_get(names, "data")};

	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		json_int_t nr = integer(of[i], "ambiguous");
		char number[40], all[40];

		if (nr)
			take_line(
				take, to,
				xasprintf(
					"%s of %s %s addresses had several files there, one after the other: "
					"each goes by the one that was there longest",
					row_grouped(nr, number, sizeof(number)),
					row_grouped(names_total(of[i]), all, sizeof(all)),
					i ? "data" : "code"));
	}
}

void names_doubts(const json_t *names, const char *lack, void (*take)(void *to, const char *line), void *to)
{
	const json_t *unnamed = json_object_get(names, "unnamed");
	json_int_t total = names_total(names);
	const char *why;
	char number[40], all[40];

	row_grouped(total, all, sizeof(all));
	for (size_t i = 0; i < ARRAY_SIZE(unnamed_whys); i++) {
		json_int_t nr = integer(unnamed, unnamed_whys[i][0]);

		if (!nr || (double)nr * 100 < total)
			continue;
		why = string(names, "failed_why");
		if (strcmp(unnamed_whys[i][0], "failed") || !*why)
			why = unnamed_whys[i][1];
		take_line(take, to,
			  xasprintf("%s of %s code addresses %s: %.*s",
				    row_grouped(nr, number, sizeof(number)), all, lack, why_bytes(why), why));
	}
	names_ambiguous(names, take, to);
	if (*string(names, "kernel_why"))
		take_line(take, to,
			  xasprintf("the kernel's code has no function names: %.*s",
				    why_bytes(string(names, "kernel_why")), string(names, "kernel_why")));
	if (*string(names, "lines_why"))
		take_line(take, to, lines_lacking(names));
}
