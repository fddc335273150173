/* SPDX-License-Identifier: GPL-2.0-only */
/* The stacks of a stored stream of records, or the difference of two streams, as one page that draws them:
 * flamegraph.html. */
#ifndef NHMTAP_FLAMEGRAPH_H
#define NHMTAP_FLAMEGRAPH_H

#include <stddef.h>
#include <jansson.h>

#include "output/text.h"

struct flamegraph;

struct flamegraph *flamegraph_new(void);
void flamegraph_release(struct flamegraph *flamegraph);

/* Before anything is taken in: each function above its callers; only intervals that begin in this part of the
 * time, in seconds since the stream's first began. */
void flamegraph_reverse(struct flamegraph *flamegraph);
void flamegraph_part(struct flamegraph *flamegraph, double from_s, double to_s);

/* What is taken in from here on is the second stream's; the page shows how it differs from the first. */
void flamegraph_second(struct flamegraph *flamegraph);

/* How many intervals were of other parts of the time. */
size_t flamegraph_left_out(const struct flamegraph *flamegraph);

/* Takes in a record of any type, in the order of the stream; it is not kept. Intervals add up; events stay
 * apart. */
void flamegraph_take(struct flamegraph *flamegraph, const json_t *record);

/* How many events with stacks there are. */
size_t flamegraph_events(const struct flamegraph *flamegraph);

/* Adds the page, whose heading is `title`. */
void flamegraph_page(const struct flamegraph *flamegraph, const char *title, struct text *page);

#endif
