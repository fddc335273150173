/* SPDX-License-Identifier: GPL-2.0-only */
/* The views of nhmtap top: tables that records are summed up in, and their lines. */
#pragma once

#include <jansson.h>

#include "annotate/annotation.h"
#include "top/lines.h"
#include "view/filter.h"
#include "view/reading.h"

enum top_view {
	VIEW_FUNCTIONS,
	VIEW_COUNTS,
	VIEW_LOADS,
	VIEW_OFFCORE,
	VIEW_BRANCHES,
	VIEW_SHARES,
	VIEW_HEALTH,
	VIEWS
};

/* "functions" */
const char *view_name(enum top_view view);

/* The view that a type of records is shown in; VIEWS: in none. */
enum top_view view_of(const char *type);

/* An order that the rows of a view can be sorted by, NULL for an index past the last one. */
const char *view_order(enum top_view view, size_t i);

/* Texts are borrowed. */
struct view_wanted {
	enum top_view view;
	const char *order;
	const struct row_filter *filter; /* must not be NULL */
	const char *function; /* a function whose lines, callers, callees and code are wanted; NULL: none */
	struct annotator *annotator; /* reads the code */
};

struct view_tables;

struct view_tables *view_new(const struct view_wanted *wanted);
void view_release(struct view_tables *tables);

/* Takes in a record of any type, in the order of the stream. It is not kept. */
void view_take(struct view_tables *tables, const json_t *record);

/* Says that all of the stream has been taken in, and how it ends. */
void view_end(struct view_tables *tables, const struct stored_end *end);

/* Adds the lines. Rows of tables without `text` are left out; "": none is. */
void view_lines(const struct view_tables *tables, struct screen_lines *lines, int width, const char *text);
