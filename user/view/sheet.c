// SPDX-License-Identifier: GPL-2.0-only
#include "view/sheet.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "output/rows.h"

#define GAP	      2 /* blanks between columns */
#define SHORTEST_TEXT 12
#define LEFT_OUT      (-1) /* a width */
#define LONGEST_TEXT  400  /* where there is no width to fit */

void sheet_column(struct sheet *sheet, const char *heading, bool number)
{
	if (sheet->nr_columns >= SHEET_COLUMNS)
		return;
	sheet->columns[sheet->nr_columns].heading = xstrdup(heading);
	sheet->columns[sheet->nr_columns++].number = number;
}

void sheet_add(struct sheet *sheet, const char *format, ...)
{
	va_list args;
	char *cell;

	va_start(args, format);
	if (vasprintf(&cell, format, args) < 0)
		cell = NULL;
	va_end(args);
	had(cell);
	sheet->cells = xroom(sheet->cells, sheet->nr, &sheet->room, sizeof(*sheet->cells));
	sheet->cells[sheet->nr++] = cell;
}

void sheet_bars(struct sheet *sheet, const double *numbers, size_t nr)
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	struct text line = {0};
	double most = 0;

	for (size_t i = 0; i < nr; i++)
		most = fmax(most, numbers[i]);
	for (size_t i = 0; i < nr; i++)
		text_add(&line, "%s",
			 numbers[i] > 0 && most > 0 ? bars[(int)fmin(7, numbers[i] / most * 8)] : bars[0]);
	sheet_add(sheet, "%s", line.bytes ?: "");
	free(line.bytes);
}

void sheet_tag(struct sheet *sheet, const char *text)
{
	sheet->tags = xroom(sheet->tags, sheet->nr_tags, &sheet->tags_room, sizeof(*sheet->tags));
	sheet->tags[sheet->nr_tags++] = xstrdup(text);
}

static int cell_width(const struct sheet *sheet, size_t column)
{
	int width = text_columns(sheet->columns[column].heading);

	for (size_t i = column; i < sheet->nr; i += sheet->nr_columns) {
		int own = text_columns(sheet->cells[i]);

		width = own > width ? own : width;
	}
	return width;
}

/* The reasons on rows are in the last column, without a heading. 0: there are none. */
static size_t reason_column(const struct sheet *sheet)
{
	size_t last = sheet->nr_columns - 1;

	return last && !sheet->columns[last].number && !*sheet->columns[last].heading ? last : 0;
}

/* Makes reasons, and then the widest columns of text, narrower until all fit, as long as they stay readable.
 * Returns whether all fit then. */
static bool make_fit(const struct sheet *sheet, int *widths, int most)
{
	size_t reasons = reason_column(sheet);
	int sum = -GAP;

	for (size_t i = 0; i < sheet->nr_columns; i++) {
		if (widths[i] > LONGEST_TEXT)
			widths[i] = LONGEST_TEXT;
		sum += widths[i] == LEFT_OUT ? 0 : GAP + widths[i];
	}
	for (; most && sum > most; sum--) {
		size_t widest = SHEET_COLUMNS;

		if (reasons && widths[reasons] > SHORTEST_TEXT) {
			widths[reasons]--;
			continue;
		}
		for (size_t i = 0; i < sheet->nr_columns; i++)
			if (!sheet->columns[i].number && widths[i] > SHORTEST_TEXT &&
			    (widest == SHEET_COLUMNS || widths[i] > widths[widest]))
				widest = i;
		if (widest == SHEET_COLUMNS)
			return false;
		widths[widest]--;
	}
	return true;
}

/* The last column that can be done without: not the first, not the name, and not a mark, which has no
 * heading. 0: there is none. */
static size_t least_column(const struct sheet *sheet, const int *widths)
{
	size_t name = sheet->nr_columns - 1, i;

	while (name && !*sheet->columns[name].heading)
		name--;
	for (i = name ? name - 1 : 0; i; i--)
		if (widths[i] != LEFT_OUT && *sheet->columns[i].heading)
			break;
	return i;
}

/* Whether a column has a heading and nothing below it, as bounds where all is counted. */
static bool is_empty(const struct sheet *sheet, size_t column)
{
	for (size_t i = column; i < sheet->nr; i += sheet->nr_columns)
		if (*sheet->cells[i])
			return false;
	return column && sheet->nr && *sheet->columns[column].heading;
}

/* Whether all fits as it is, but for reasons that are shortened. */
static bool fits_width(const struct sheet *sheet, const bool *left_out, int most)
{
	size_t reasons = reason_column(sheet);
	int sum = -GAP;

	for (size_t i = 0; i < sheet->nr_columns; i++) {
		int own = cell_width(sheet, i);

		if (reasons && i == reasons && own > SHORTEST_TEXT)
			own = SHORTEST_TEXT;
		sum += left_out[i] ? 0 : GAP + own;
	}
	return !most || sum <= most;
}

/* Leaves out columns until the others fit: first those that are empty and reasons, before names are
 * shortened.
 */
static void choose_widths(const struct sheet *sheet, int *widths, int most)
{
	bool left_out[SHEET_COLUMNS] = {0}, narrow = !fits_width(sheet, left_out, most);
	size_t reasons = reason_column(sheet);

	for (size_t i = 0; i < sheet->nr_columns; i++)
		left_out[i] = narrow && is_empty(sheet, i);
	if (reasons && !fits_width(sheet, left_out, most))
		left_out[reasons] = true;

	for (;;) {
		size_t least;

		for (size_t i = 0; i < sheet->nr_columns; i++)
			widths[i] = left_out[i] ? LEFT_OUT : cell_width(sheet, i);
		if (make_fit(sheet, widths, most))
			return;
		least = least_column(sheet, widths);
		if (!least)
			return;
		left_out[least] = true;
	}
}

/* Says which columns are left out that are not empty. */
static void print_left_out(const struct sheet *sheet, struct text *text, const int *widths)
{
	const char *between = "# too narrow for ";
	size_t reasons = reason_column(sheet);

	for (size_t i = 0; i < sheet->nr_columns; i++) {
		if (widths[i] != LEFT_OUT || is_empty(sheet, i) || !cell_width(sheet, i))
			continue;
		text_add(text, "%s%s", between, reasons && i == reasons ? "why" : sheet->columns[i].heading);
		between = ", ";
	}
	if (*between == ',')
		text_add(text, "\n");
}

static void print_row(const struct sheet *sheet, struct text *text, char *const *cells, const int *widths)
{
	for (size_t i = 0; i < sheet->nr_columns; i++) {
		if (widths[i] == LEFT_OUT)
			continue;
		text_add(text, "%*s", i ? GAP : 0, "");
		text_add_cell(text, cells ? cells[i] : sheet->columns[i].heading, widths[i],
			      sheet->columns[i].number);
	}
	row_end(text);
}

void sheet_print(const struct sheet *sheet, struct text *text, int width)
{
	int widths[SHEET_COLUMNS];

	choose_widths(sheet, widths, width);
	print_row(sheet, text, NULL, widths);
	for (size_t i = 0; i + sheet->nr_columns <= sheet->nr; i += sheet->nr_columns)
		print_row(sheet, text, sheet->cells + i, widths);
	print_left_out(sheet, text, widths);
}

void sheet_release(struct sheet *sheet)
{
	for (size_t i = 0; i < sheet->nr; i++)
		free(sheet->cells[i]);
	for (size_t i = 0; i < sheet->nr_columns; i++)
		free(sheet->columns[i].heading);
	for (size_t i = 0; i < sheet->nr_tags; i++)
		free(sheet->tags[i]);
	free(sheet->tags);
	free(sheet->cells);
	*sheet = (struct sheet){0};
}
