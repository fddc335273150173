/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts, metrics, off-core cells and shares of cycles of stored records, with their bounds, over all
 * intervals. */
#ifndef NHMTAP_FIGURES_H
#define NHMTAP_FIGURES_H

#include <stdbool.h>
#include <jansson.h>

#include "output/text.h"
#include "view/filter.h"

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

/* Appends a table of them, with `diff` of how they differ between the streams. */
void figures_print(const struct figures *figures, bool diff, struct text *text, int width);

#endif
