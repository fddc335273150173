// SPDX-License-Identifier: GPL-2.0-only
/* The table of offcore: a matrix of requests and responses. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "output/rows.h"
#include "output/table.h"

#define NAME_WIDTH    18
#define HEADING_LINES 6
#define COLUMNS_MOST  17

/* The columns of a matrix, which are the responses of its first row. */
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
	columns.width = (TEXT_WIDTH - NAME_WIDTH) / (columns.nr ? (int)columns.nr : 1);
	if (columns.width > 14)
		columns.width = 14;
	if (columns.width < 7)
		columns.width = 7;
	return columns;
}

/* Takes as many words of the name ("LLC_HIT_OTHER_CORE") as fit. Returns the rest of the name. */
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
		text_add(text, "%*s", NAME_WIDTH, "");
		for (size_t i = 0; i < columns.nr; i++) {
			const char *words = columns.names[i];
			int length;

			columns.names[i] = take_words(words, columns.width - 1, &length);
			text_add(text, "%*.*s", columns.width, length, words);
			left = left || *columns.names[i];
		}
		row_end(text);
	}
}

/* Formats "~20,480±3%", or "~20.5M±3%" if that is too wide. Returns whether it fits. If `behind` is not
 * empty, its sign takes two bytes but one column. */
static bool add_number(char *content, size_t size, const char *mark, double value, const char *behind,
		       int width)
{
	static const char units[] = " kMGTPE";
	int bytes = width + (*behind ? 1 : 0), unit = 1;
	char number[40];

	snprintf(content, size, "%s%s%s", mark, row_grouped((json_int_t)value, number, sizeof(number)),
		 behind);
	for (; (int)strlen(content) >= bytes && units[unit]; unit++) {
		value /= 1000;
		snprintf(content, size, value < 10 ? "%s%.1f%c%s" : "%s%.0f%c%s", mark, value, units[unit],
			 behind);
	}
	return (int)strlen(content) < bytes && (unit == 1 || value >= 1);
}

/* An estimate that can be so many times as much says no more than its upper bound. */
#define SAYS_LITTLE 10

/* "~" marks an estimate, "<" an upper bound, "?" an unknown value. The error of an estimate follows it if
 * there is room. */
static void add_cell(struct text *text, const json_t *cell, int width)
{
	const json_t *bound = json_object_get(cell, "bound"), *high = json_object_get(bound, "high");
	double value = integer(cell, "scaled"), low = json_number_value(json_object_get(bound, "low"));
	double most = json_number_value(high);
	bool wide = bound && low > 0 && most < SAYS_LITTLE * value; /* its error is shown, with the sign */
	char content[64], off[16] = "";

	if (!strcmp(string(cell, "status"), "not_counted") || (bound && !high)) {
		text_add(text, "%*s", width, "?");
		return;
	}
	if (wide)
		snprintf(off, sizeof(off), "±%.0f%%", 100 * fmax(most - value, value - low) / value);
	if (bound && !wide)
		add_number(content, sizeof(content), "<", most, "", width);
	else if (!add_number(content, sizeof(content), bound ? "~" : "", value, off, width)) {
		add_number(content, sizeof(content), bound ? "~" : "", value, "", width);
		wide = false;
	}
	text_add(text, "%*s", width + wide, content);
}

static void cell_rows(struct text *text, const json_t *cells, const struct columns *columns)
{
	json_t *cell;
	size_t i;

	json_array_foreach(cells, i, cell) {
		if (i % columns->nr == 0)
			text_add(text, "%s%-*.*s", i ? "\n" : "", NAME_WIDTH, NAME_WIDTH - 1,
				 string(cell, "request"));
		add_cell(text, cell, columns->width);
	}
	text_add(text, "\n");
}

static void add_share(struct text *text, const json_t *record, const char *name, const char *shown)
{
	const json_t *value = json_object_get(record, name), *bound;
	char bound_name[40];

	snprintf(bound_name, sizeof(bound_name), "%s_bound", name);
	bound = json_object_get(record, bound_name);
	if (value && bound && !integer(bound, "readings"))
		text_add(text, "%s ?   ", shown);
	else if (value)
		text_add(text, "%s %.1f%%", shown, 100 * json_number_value(value));
	if (value && bound && integer(bound, "readings"))
		text_add(text, " (%.1f%% to %.1f%%)", 100 * json_number_value(json_object_get(bound, "low")),
			 100 * json_number_value(json_object_get(bound, "high")));
	if (value && !(bound && !integer(bound, "readings")))
		text_add(text, "   ");
}

/* The number of executions, and their spread. */
static void add_executions(struct text *text, const json_t *repeated)
{
	const json_t *spread = json_object_get(repeated, "instructions");
	double mean = json_number_value(json_object_get(spread, "mean"));
	double least = json_number_value(json_object_get(spread, "min"));
	double most = json_number_value(json_object_get(spread, "max"));

	text_add(text, "of one of %lld executions, each of which counted %lld of the cells",
		 (long long)integer(repeated, "executions"), (long long)integer(repeated, "cells_at_once"));
	if (mean > 0)
		text_add(text, "\ntheir instructions were %.2f%% apart", 100 * (most - least) / mean);
}

/* Adds the share of the time for which cells ran: the least and the greatest. */
static void add_running(struct text *text, const json_t *cells, bool repeated)
{
	double least = 100, most = 0;
	bool unknown = false;
	json_t *cell;
	size_t i;

	json_array_foreach(cells, i, cell) {
		const json_t *bound = json_object_get(cell, "bound");
		double ran = row_share(integer(cell, "running_ns"), integer(cell, "enabled_ns"));

		least = ran < least ? ran : least;
		most = ran > most ? ran : most;
		unknown =
			unknown || !integer(cell, "running_ns") || (bound && !json_object_get(bound, "high"));
	}
	if (least < 100 && !repeated)
		text_add(text, "each cell ran %.1f%% to %.1f%% of the time", least, most);
	if (unknown && !(most > 0))
		text_add(text, "\n?: %s", string(json_array_get(cells, 0), "why"));
	else if (unknown)
		text_add(text,
			 "%s?: too few turns on the register to say; run longer, or COMMAND again: -r auto",
			 least < 100 ? "\n" : "");
}

static void offcore_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *cells = json_object_get(record, "cells");
	char name[ROW_NAME_MAX];
	bool apart = *row_name(record, name, sizeof(name));
	struct columns columns = columns_of(cells);

	if (!apart)
		row_time(text, stream, record);
	text_add(text, "off-core requests in %.3f s", integer(record, "duration_ns") / 1e9);
	if (apart)
		text_add(text, ", %s", name);
	text_add(text, "\n");
	heading_rows(text, columns);
	cell_rows(text, cells, &columns);
	add_share(text, record, "remote_share", "remote");
	add_share(text, record, "hitm_share", "modified");
	add_share(text, record, "prefetch_share", "prefetched");
	if (json_object_get(record, "repeated"))
		add_executions(text, json_object_get(record, "repeated"));
	add_running(text, cells, json_object_get(record, "repeated"));
	row_end(text);
	text_add(text, "\n");
}

REGISTER_TABLE(offcore, offcore_table);
