/* SPDX-License-Identifier: GPL-2.0-only */
/* A table of text that fits a width: columns are as wide as their contents, and if this is too wide, the
 * longest texts are shortened in the middle. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "output/text.h"

#define SHEET_COLUMNS 24

/* Starts as {0}. */
struct sheet {
	struct {
		char *heading;
		bool number; /* its cells are aligned at the right, and never shortened */
	} columns[SHEET_COLUMNS];
	size_t nr_columns;
	char **cells; /* row by row */
	size_t nr, room;
	char **tags; /* what each row is of, as it is, for a view in which rows can be chosen */
	size_t nr_tags, tags_room;
};

void sheet_column(struct sheet *sheet, const char *heading, bool number);

/* Adds the next cell, from the left to the right and row by row. */
void sheet_add(struct sheet *sheet, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a cell of bars, from 0 to the largest of the numbers. */
void sheet_bars(struct sheet *sheet, const double *numbers, size_t nr);

/* Says what the next row is of: a text that is not printed. */
void sheet_tag(struct sheet *sheet, const char *text);

/* Appends the table. `width` is the number of columns of the terminal; 0: there is no limit. */
void sheet_print(const struct sheet *sheet, struct text *text, int width);

void sheet_release(struct sheet *sheet);
