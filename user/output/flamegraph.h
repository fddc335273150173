/* SPDX-License-Identifier: GPL-2.0-only */
/* Makes one HTML page that draws the stacks of a stored stream of records, or the difference of two streams.
 * The page's template is flamegraph.html. */
#pragma once

#include <stddef.h>
#include <jansson.h>

#include "output/text.h"

struct flamegraph;

struct flamegraph *flamegraph_new(void);
void flamegraph_release(struct flamegraph *flamegraph);

/*
 * These two must be called before any record is taken in. flamegraph_reverse() puts each function above its
 * callers; flamegraph_part() takes only intervals that begin within this part of the stream, in seconds since
 * its first interval began.
 */
void flamegraph_reverse(struct flamegraph *flamegraph);
void flamegraph_part(struct flamegraph *flamegraph, double from_s, double to_s);

/* Records that are taken in from here on belong to the second stream. The page shows how it differs from the
 * first. */
void flamegraph_second(struct flamegraph *flamegraph);

/* The number of intervals that were left out because they are of other parts of the time. */
size_t flamegraph_left_out(const struct flamegraph *flamegraph);

/* Takes in a record of any type, in the order of the stream; the record is not kept. Intervals are summed up,
 * and each event has its own graph. */
void flamegraph_take(struct flamegraph *flamegraph, const json_t *record);

/* The number of events with stacks. */
size_t flamegraph_events(const struct flamegraph *flamegraph);

/* Appends the page to `page`, with `title` as its heading. */
void flamegraph_page(struct flamegraph *flamegraph, const char *title, struct text *page);
