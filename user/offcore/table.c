// SPDX-License-Identifier: GPL-2.0-only
/* offcore's: a matrix of requests and responses. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "output/rows.h"
#include "output/table.h"

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

	json_array_foreach(cells, i,
			   cell) if (columns.nr < COLUMNS_MOST && !strcmp(string(cell, "request"), first))
		columns.names[columns.nr++] = string(cell, "response");
	columns.width = (TEXT_WIDTH - NAME_WIDTH) / (columns.nr ? (int)columns.nr : 1);
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

/* "20,480", or "20.5M" where that is too wide; "~" says that it is an estimate, "-" that there is none. */
static void add_cell(struct text *text, const json_t *cell, int width)
{
	static const char units[] = " kMGTPE";
	const char *status = string(cell, "status"), *mark = strcmp(status, "multiplexed") ? "" : "~";
	char number[40], content[48];
	double value = integer(cell, "scaled");

	if (!strcmp(status, "not_counted")) {
		text_add(text, "%*s", width, "-");
		return;
	}
	snprintf(content, sizeof(content), "%s%s", mark,
		 row_grouped(integer(cell, "scaled"), number, sizeof(number)));
	for (int unit = 1; (int)strlen(content) >= width && units[unit]; unit++) {
		value /= 1000;
		snprintf(content, sizeof(content), value < 10 ? "%s%.1f%c" : "%s%.0f%c", mark, value,
			 units[unit]);
	}
	text_add(text, "%*s", width, content);
}

static void cell_rows(struct text *text, const json_t *cells, const struct columns *columns)
{
	json_t *cell;
	size_t i;

	json_array_foreach(cells, i, cell)
	{
		if (i % columns->nr == 0)
			text_add(text, "%s%-*.*s", i ? "\n" : "", NAME_WIDTH, NAME_WIDTH - 1,
				 string(cell, "request"));
		add_cell(text, cell, columns->width);
	}
	text_add(text, "\n");
}

static void add_share(struct text *text, const json_t *record, const char *name, const char *shown)
{
	const json_t *value = json_object_get(record, name);

	if (value)
		text_add(text, "%s %.1f%%   ", shown, 100 * json_number_value(value));
}

/* How long the cells ran, of the time that they were to: the least and the most. */
static void add_running(struct text *text, const json_t *cells)
{
	double least = 100, most = 0;
	json_t *cell;
	size_t i;

	json_array_foreach(cells, i, cell)
	{
		double ran = row_share(integer(cell, "running_ns"), integer(cell, "enabled_ns"));

		least = ran < least ? ran : least;
		most = ran > most ? ran : most;
	}
	if (least < 100)
		text_add(text, "each cell ran %.1f%% to %.1f%% of the time", least, most);
	if (least == 0)
		text_add(text, "\n-: had no turn on the register: run longer, or count whole CPUs (-a)");
}

static void offcore_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *cells = json_object_get(record, "cells");
	char name[256];
	bool apart = *row_name(record, name, sizeof(name));
	struct columns columns = columns_of(cells);

	if (!apart)
		row_screen(text, stream);
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
	add_running(text, cells);
	row_end(text);
	text_add(text, "\n");
}

REGISTER_TABLE(offcore, offcore_table);
