/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts, metrics, off-core cells and shares of cycles of stored records, with their bounds, over all
 * intervals. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "output/text.h"
#include "view/filter.h"
#include "view/sheet.h"

struct figures;

/* The filter is borrowed; NULL: none. */
struct figures *figures_new(const struct row_filter *filter);
void figures_release(struct figures *figures);

/* Records that are taken in from here on belong to the second stream. */
void figures_second(struct figures *figures);

/* Takes in a record of any type. It is not kept. */
void figures_take(struct figures *figures, const json_t *record);

/* The number of figures so far. */
size_t figures_number(const struct figures *figures);

/* Names of sections. */
#define FIGURES_COUNTS	 "counts"
#define FIGURES_METRICS	 "metrics"
#define FIGURES_MEANS	 "means of executions"
#define FIGURES_OFFCORE	 "off-core requests"
#define FIGURES_ANALYSIS "shares of the cycles"

/* Makes a table of a section over time: each figure with its last value, and its last intervals as a
 * line. */
void figures_history(const struct figures *figures, const char *section, struct sheet *sheet);

/* Makes the off-core matrix: a row for each kind of request, a column for each kind of response. */
void figures_matrix(const struct figures *figures, struct sheet *sheet);

/* Appends a table of them, with `diff` of how they differ between the streams. */
void figures_print(const struct figures *figures, bool diff, struct text *text, int width);
