// SPDX-License-Identifier: GPL-2.0-only
/* For people: one block a record, columns aligned, digits grouped. */
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "output/output.h"

/* --- text ------------------------------------------------------------------------------------------ */

struct text {
	char *bytes;
	size_t used, room;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
	va_list args;
	size_t length;

	va_start(args, format);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (text->used + length + 1 > text->room) {
		text->room = 2 * (text->used + length + 1);
		text->bytes = realloc(text->bytes, text->room);
	}
	va_start(args, format);
	vsnprintf(text->bytes + text->used, length + 1, format, args);
	va_end(args);
	text->used += length;
}

/* 1234567 → "1,234,567", in every locale. */
static const char *grouped(json_int_t number, char *buffer, size_t size)
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

static json_int_t integer(const json_t *record, const char *name)
{
	return json_integer_value(json_object_get(record, name));
}

static const char *string(const json_t *record, const char *name)
{
	const char *value = json_string_value(json_object_get(record, name));

	return value ? value : "";
}

/* "2026-01-31T23:59:59.123456789Z" → "23:59:59.123", in front of every line of an interval. */
static void add_time(struct text *text, const struct stream *stream, const json_t *record)
{
	if (stream->intervals)
		add(text, "%.12s  ", string(record, "time") + 11);
}

/* On a terminal each interval takes the place of the one before. */
static void begin_screen(struct text *text, const struct stream *stream)
{
	if (stream->intervals && stream->sink.terminal)
		add(text, "\033[H\033[2J");
}

static double share(json_int_t part, json_int_t whole)
{
	return whole ? 100.0 * part / whole : 0;
}

/* --- start, error, end ------------------------------------------------------------------------------- */

static void start_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const char *why = string(record, "default_event_why");

	if (*why)
		add(text, "# %s\n", why);
}

static void end_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *lost = json_object_get(json_object_get(record, "samples"), "lost");
	const char *cause;
	char number[40];
	json_t *count;

	json_object_foreach((json_t *)lost, cause, count)
		if (json_integer_value(count))
			add(text, "# %s samples are not in the tables: %s\n",
			    grouped(json_integer_value(count), number, sizeof(number)), cause);
}

/* --- counts --------------------------------------------------------------------------------------------- */

static void count_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const char *status = string(record, "status");
	const char *unit = string(record, "unit");
	json_t *in_unit = json_object_get(record, "value_in_unit");
	char number[40] = "not counted";

	add_time(text, stream, record);
	if (in_unit)
		snprintf(number, sizeof(number), "%.3f", json_real_value(in_unit));
	else if (strcmp(status, "not_counted"))
		grouped(integer(record, "scaled"), number, sizeof(number));
	add(text, "%24s %-6s %s", number, unit, string(record, "event"));
	if (!strcmp(status, "multiplexed"))
		add(text, "  (ran %.1f%% of the time)",
		    share(integer(record, "running_ns"), integer(record, "enabled_ns")));
	add(text, "\n");
}

static void summary_table(struct text *text, const struct stream *stream, const json_t *record)
{
	double mean = json_number_value(json_object_get(record, "mean"));
	double stddev = json_number_value(json_object_get(record, "stddev"));
	char number[40] = "not counted";

	if (integer(record, "counted"))
		grouped((json_int_t)(mean + 0.5), number, sizeof(number));
	add(text, "%24s %-6s %s  (mean of %lld", number, string(record, "unit"),
	    string(record, "event"), (long long)integer(record, "counted"));
	if (json_object_get(record, "stddev"))
		add(text, ", standard deviation %.2f%%", mean ? 100 * stddev / mean : 0);
	add(text, ")\n");
}

/* --- profiles ------------------------------------------------------------------------------------------- */

/* A key's value as a cell. Control characters must not reach the terminal. */
static void cell(const json_t *value, char *buffer, size_t size)
{
	if (json_is_string(value))
		snprintf(buffer, size, "%s", json_string_value(value));
	else
		snprintf(buffer, size, "%lld", (long long)json_integer_value(value));
	for (char *at = buffer; *at; at++)
		if (iscntrl((unsigned char)*at))
			*at = '?';
}

static bool is_key(const char *name)
{
	return strcmp(name, "samples") && strcmp(name, "period") && strncmp(name, "latency_", 8);
}

static int column_width(const json_t *entries, const char *name)
{
	size_t width = strlen(name), i;
	char text[256];
	json_t *entry;

	json_array_foreach(entries, i, entry) {
		cell(json_object_get(entry, name), text, sizeof(text));
		if (strlen(text) > width)
			width = strlen(text);
	}
	return width;
}

/* The last column needs no filling. */
static void end_row(struct text *text)
{
	while (text->used && text->bytes[text->used - 1] == ' ')
		text->used--;
	add(text, "\n");
}

static void entry_rows(struct text *text, const json_t *entries, json_int_t total)
{
	const json_t *first = json_array_get(entries, 0);
	char number[40], content[256];
	const char *name;
	json_t *value, *entry;
	size_t i;

	add(text, "%12s %7s", "samples", "share");
	json_object_foreach((json_t *)first, name, value)
		if (is_key(name))
			add(text, "  %-*s", column_width(entries, name), name);
	end_row(text);
	json_array_foreach(entries, i, entry) {
		json_int_t samples = integer(entry, "samples");

		add(text, "%12s %6.1f%%", grouped(samples, number, sizeof(number)),
		    share(samples, total));
		json_object_foreach(entry, name, value) {
			if (!is_key(name))
				continue;
			cell(value, content, sizeof(content));
			add(text, "  %-*s", column_width(entries, name), content);
		}
		end_row(text);
	}
}

static void rest_row(struct text *text, const json_t *rest, json_int_t total)
{
	char number[40], others[40];

	if (rest)
		add(text, "%12s %6.1f%%  in %s more\n",
		    grouped(integer(rest, "samples"), number, sizeof(number)),
		    share(integer(rest, "samples"), total),
		    grouped(integer(rest, "entries"), others, sizeof(others)));
}

static void profile_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *samples = json_object_get(record, "samples");
	const json_t *entries = json_object_get(record, "entries");
	json_int_t total = integer(samples, "aggregated");
	char number[40];

	add_time(text, stream, record);
	add(text, "%s: %s samples in %.3f s\n", string(record, "event"),
	    grouped(total, number, sizeof(number)), integer(record, "duration_ns") / 1e9);
	if (json_array_size(entries))
		entry_rows(text, entries, total);
	rest_row(text, json_object_get(record, "rest"), total);
	add(text, "\n");
}

/* --- loads ------------------------------------------------------------------------------------------------ */

#define FIRST_BUCKET 2 /* 4 cycles: the shortest load; guide, section 3.7 */
#define LAST_BUCKET  15

/* How many samples there are in each bucket, as a column of eight heights; the highest is the fullest. */
static void add_histogram(struct text *text, const json_t *histogram)
{
	static const char *const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	json_int_t counts[LAST_BUCKET + 1] = {0}, most = 0;
	char bound[24];

	for (int i = 0; i <= LAST_BUCKET; i++) {
		snprintf(bound, sizeof(bound), "%d", 1 << i);
		counts[i] = integer(histogram, bound);
		if (counts[i] > most)
			most = counts[i];
	}
	for (int i = FIRST_BUCKET; i <= LAST_BUCKET; i++)
		add(text, "%s", counts[i] ? heights[counts[i] * 7 / most] : "·");
}

static json_int_t mean_latency(const json_t *value)
{
	const json_t *histogram = json_object_get(value, "latency_histogram");
	json_int_t measured = 0;
	const char *bound;
	json_t *count;

	json_object_foreach((json_t *)histogram, bound, count)
		measured += json_integer_value(count);
	return measured ? (integer(value, "latency_sum") + measured / 2) / measured : 0;
}

static void source_rows(struct text *text, const json_t *sources, json_int_t total)
{
	char number[40], longest[40];
	json_t *source;
	size_t i;

	add(text, "%-26s %11s %7s %6s %7s  %s\n", "source", "samples", "share", "mean", "max",
	    "4  16   256  4k");
	json_array_foreach(sources, i, source) {
		json_int_t samples = integer(source, "samples");

		add(text, "%-26s %11s %6.1f%% %6lld %7s  ", string(source, "source"),
		    grouped(samples, number, sizeof(number)), share(samples, total),
		    (long long)mean_latency(source),
		    grouped(integer(source, "latency_max"), longest, sizeof(longest)));
		add_histogram(text, json_object_get(source, "latency_histogram"));
		add(text, "\n");
	}
}

static bool has_other_keys(const json_t *entries)
{
	const char *name;
	json_t *value;

	json_object_foreach(json_array_get(entries, 0), name, value)
		if (is_key(name) && strcmp(name, "source"))
			return true;
	return false;
}

static void mem_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *samples = json_object_get(record, "samples");
	const json_t *entries = json_object_get(record, "entries");
	json_int_t total = integer(samples, "aggregated");
	char number[40];

	begin_screen(text, stream);
	add_time(text, stream, record);
	add(text, "%s: %s samples in %.3f s, latency in core cycles\n", string(record, "event"),
	    grouped(total, number, sizeof(number)), integer(record, "duration_ns") / 1e9);
	if (strcmp(string(record, "status"), "counted"))
		add(text, "# %s, %.1f%% of the time: %s\n", string(record, "status"),
		    share(integer(record, "running_ns"), integer(record, "enabled_ns")),
		    string(record, "why"));
	if (total)
		source_rows(text, json_object_get(record, "sources"), total);
	if (has_other_keys(entries)) {
		entry_rows(text, entries, total);
		rest_row(text, json_object_get(record, "rest"), total);
	}
	add(text, "\n");
}

/* A line a sample: when, from where, how long, where it was found, and the keys. */
static void sample_table(struct text *text, const struct stream *stream, const json_t *record)
{
	static const char *const first[] = {"type",	   "schema_version", "time",   "run_id", "seq",
					    "sample_time", "event",	     "source", "address", "latency",
					    "period"};
	const char *name;
	char content[256];
	json_t *value;

	add(text, "%.15s  %18s %6lld  %-22s", string(record, "sample_time") + 11,
	    string(record, "address"), (long long)integer(record, "latency"),
	    string(record, "source"));
	json_object_foreach((json_t *)record, name, value) {
		size_t i = 0;

		while (i < sizeof(first) / sizeof(first[0]) && strcmp(first[i], name))
			i++;
		if (i < sizeof(first) / sizeof(first[0]))
			continue;
		cell(value, content, sizeof(content));
		add(text, " %s", content);
	}
	end_row(text);
}

/* --- lines that cores share ----------------------------------------------------------------------------- */

static void shared_line_table(struct text *text, const struct stream *stream, const json_t *record)
{
	json_int_t common = integer(record, "offsets_in_common");

	add(text, "line %s: %lld loads, %lld found it modified by another core, %lld in another's cache\n",
	    string(record, "cacheline"), (long long)integer(record, "samples"),
	    (long long)integer(record, "modified"), (long long)integer(record, "other_core"));
	add(text, "  %lld threads on %lld CPUs loaded from %lld places in it, ",
	    (long long)integer(record, "threads"), (long long)integer(record, "cpus"),
	    (long long)integer(record, "offsets"));
	if (!common && integer(record, "threads") > 1)
		add(text, "none in common: false sharing?\n");
	else
		add(text, "%lld of them in common\n", (long long)common);
	entry_rows(text, json_object_get(record, "entries"), integer(record, "samples"));
	add(text, "\n");
}

/* --- off-core requests -------------------------------------------------------------------------------------- */

#define SCREEN_WIDTH  80
#define NAME_WIDTH    18
#define HEADING_LINES 6
#define COLUMNS_MOST  17

/* The columns of a matrix: the responses of its first row. */
struct columns {
	const char *names[COLUMNS_MOST];
	size_t nr;
	int width;
};

static struct columns columns_of(const json_t *cells)
{
	const char *first = string(json_array_get(cells, 0), "request");
	struct columns columns = {0};
	json_t *cell;
	size_t i;

	json_array_foreach(cells, i, cell)
		if (columns.nr < COLUMNS_MOST && !strcmp(string(cell, "request"), first))
			columns.names[columns.nr++] = string(cell, "response");
	columns.width = (SCREEN_WIDTH - NAME_WIDTH) / (columns.nr ? (int)columns.nr : 1);
	if (columns.width > 14)
		columns.width = 14;
	if (columns.width < 7)
		columns.width = 7;
	return columns;
}

/* Takes as many words of the name ("LLC_HIT_OTHER_CORE") as fit; returns what is left. */
static const char *take_words(const char *name, int width, int *length)
{
	int taken = 0;

	for (int end = strcspn(name, "_|");; end += 1 + strcspn(name + end + 1, "_|")) {
		if (taken && end > width)
			break;
		taken = end;
		if (!name[end])
			break;
	}
	*length = taken < width ? taken : width;
	return name + taken + (name[taken] != '\0');
}

static void heading_rows(struct text *text, struct columns columns)
{
	bool left = true;

	for (int line = 0; left && line < HEADING_LINES; line++) {
		left = false;
		add(text, "%*s", NAME_WIDTH, "");
		for (size_t i = 0; i < columns.nr; i++) {
			const char *words = columns.names[i];
			int length;

			columns.names[i] = take_words(words, columns.width - 1, &length);
			add(text, "%*.*s", columns.width, length, words);
			left = left || *columns.names[i];
		}
		end_row(text);
	}
}

/* "20,480", or "20.5M" where that is too wide; "~" says that it is an estimate, "-" that there is none. */
static void add_cell(struct text *text, const json_t *cell, int width)
{
	static const char units[] = " kMGTPE";
	const char *status = string(cell, "status"), *mark = strcmp(status, "multiplexed") ? "" : "~";
	char number[40], content[48];
	double value = integer(cell, "scaled");

	if (!strcmp(status, "not_counted")) {
		add(text, "%*s", width, "-");
		return;
	}
	snprintf(content, sizeof(content), "%s%s", mark,
		 grouped(integer(cell, "scaled"), number, sizeof(number)));
	for (int unit = 1; (int)strlen(content) >= width && units[unit]; unit++) {
		value /= 1000;
		snprintf(content, sizeof(content), value < 10 ? "%s%.1f%c" : "%s%.0f%c", mark, value,
			 units[unit]);
	}
	add(text, "%*s", width, content);
}

static void cell_rows(struct text *text, const json_t *cells, const struct columns *columns)
{
	json_t *cell;
	size_t i;

	json_array_foreach(cells, i, cell) {
		if (i % columns->nr == 0)
			add(text, "%s%-*.*s", i ? "\n" : "", NAME_WIDTH, NAME_WIDTH - 1,
			    string(cell, "request"));
		add_cell(text, cell, columns->width);
	}
	add(text, "\n");
}

static void add_share(struct text *text, const json_t *record, const char *name, const char *shown)
{
	const json_t *value = json_object_get(record, name);

	if (value)
		add(text, "%s %.1f%%   ", shown, 100 * json_number_value(value));
}

/* How long the cells ran, of the time that they were to: the least and the most. */
static void add_running(struct text *text, const json_t *cells)
{
	double least = 100, most = 0;
	json_t *cell;
	size_t i;

	json_array_foreach(cells, i, cell) {
		double ran = share(integer(cell, "running_ns"), integer(cell, "enabled_ns"));

		least = ran < least ? ran : least;
		most = ran > most ? ran : most;
	}
	if (least < 100)
		add(text, "each cell ran %.1f%% to %.1f%% of the time", least, most);
	if (least == 0)
		add(text, "\n-: had no turn on the one register: run longer, or count whole CPUs (-a)");
}

static void offcore_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *cells = json_object_get(record, "cells"), *cpu = json_object_get(record, "cpu");
	struct columns columns = columns_of(cells);

	if (!cpu)
		begin_screen(text, stream);
	add_time(text, stream, record);
	add(text, "off-core requests in %.3f s", integer(record, "duration_ns") / 1e9);
	if (cpu)
		add(text, " on CPU %lld", (long long)json_integer_value(cpu));
	add(text, "\n");
	heading_rows(text, columns);
	cell_rows(text, cells, &columns);
	add_share(text, record, "remote_share", "remote");
	add_share(text, record, "hitm_share", "modified");
	add_share(text, record, "prefetch_share", "prefetched");
	add_running(text, cells);
	end_row(text);
	add(text, "\n");
}

/* --- by type --------------------------------------------------------------------------------------------- */

static const struct {
	const char *type;
	void (*add)(struct text *text, const struct stream *stream, const json_t *record);
} tables[] = {
	{"start", start_table},	    {"count", count_table}, {"summary", summary_table},
	{"profile", profile_table}, {"mem", mem_table},	    {"offcore", offcore_table},
	{"shared_line", shared_line_table}, {"sample", sample_table},
	{"end", end_table},
	/* An error is told in words, on stderr. */
};

int output_table(struct stream *stream, const json_t *record)
{
	struct text text = {0};
	int err = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!strcmp(tables[i].type, string(record, "type")))
			tables[i].add(&text, stream, record);
	if (text.used)
		err = sink_put(&stream->sink, text.bytes, text.used);
	free(text.bytes);
	return err;
}
