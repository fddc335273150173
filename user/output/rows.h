/* SPDX-License-Identifier: GPL-2.0-only */
/* Cells and rows of entries, which the tables of several record types share. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "output/output.h"
#include "output/text.h"

/* 1234567 as "1,234,567", in every locale; returns buffer. */
const char *row_grouped(json_int_t number, char *buffer, size_t size);

/* "1 sample", "2,000 samples"; returns buffer. */
const char *row_counted(json_int_t number, const char *what, char *buffer, size_t size);

/* 1234567.25 as "1,234,567.250"; returns buffer. */
const char *row_grouped_real(double number, char *buffer, size_t size);

#define ROW_NAME_MAX 4400 /* bytes of the longest path of a cgroup, and of numbers */

/* The keys of a row of counts as text: "socket 0, core 1"; "" if it has none. Returns buffer. */
const char *row_name(const json_t *record, char *buffer, size_t size);

/* "instructions:u 2, CPU 0": the name of a row's event or metric, which of several equal ones it is, and its
 * keys. The caller frees it. */
char *row_title(const json_t *record, const char *name);

/* `part` of `whole` in percent; 0 if whole is 0. */
double row_share(json_int_t part, json_int_t whole);

/* All entries of a record, of which its rows are shares. */
struct whole {
	double weight;	/* what their samples stand for: see calls_weight() */
	double squares; /* the sum of their share_square() */
};

/* Sums up a list of entries and `rest`, which may be NULL. */
struct whole whole_of(const json_t *entries, const json_t *rest);

/* Adds the columns "samples", "share" and "±" of an entry or of `rest`. The last is how far the share
 * may be off by the number of samples, in percentage points: see share_error(); blank if it is less than a
 * tenth of the share. */
void row_weight(struct text *text, const json_t *entry, const struct whole *whole);
#define ROW_WEIGHT_HEADINGS "     samples   share     ±"

/* A key's value as text, without control characters, which would act on a terminal. */
void row_cell(const json_t *value, char *buffer, size_t size);

/* Adds the time of the interval in front of a block, if there are several intervals, and in a session of
 * CONFIG the name of the activity. */
void row_time(struct text *text, const struct stream *stream, const json_t *record);

/* Whether a member of an entry is a key, not a value. */
bool row_is_key(const char *name);

/* Ends a row: removes the blanks that fill the last column, and adds a newline. */
void row_end(struct text *text);

/* rows_of_entries() adds a table of entries: samples, their share of the whole, and the keys. row_of_rest()
 * adds the sum of what --top left out; `rest` may be NULL. */
void rows_of_entries(struct text *text, const json_t *entries, const struct whole *whole);
void row_of_rest(struct text *text, const json_t *rest, const struct whole *whole);

/* rows_of_stacks() is rows_of_entries() for entries with stacks: below each entry are its functions, one a
 * line, from the innermost. row_stack() adds only these lines. */
void rows_of_stacks(struct text *text, const struct calls *calls, const json_t *entries,
		    const struct whole *whole);
void row_stack(struct text *text, const struct calls *calls, const json_t *entry);

/* Hands over a line, without its end, for each reason that left at least one in a hundred addresses of an
 * `end` record's `names` without a name, and for what is in doubt. `lack` is said of them: "have no function
 * name". */
void names_doubts(const json_t *names, const char *lack, void (*take)(void *to, const char *line), void *to);

/* Hands over a line, without its end, for each `ambiguous` in it that is not 0. */
void names_ambiguous(const json_t *names, void (*take)(void *to, const char *line), void *to);

/* What `lines_why` in it says, in words that the caller frees, or NULL. */
char *lines_lacking(const json_t *names);
