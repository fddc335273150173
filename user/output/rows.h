/* SPDX-License-Identifier: GPL-2.0-only */
/* What the blocks of the people's form have in common: cells, and rows of entries. */
#ifndef NHMTAP_ROWS_H
#define NHMTAP_ROWS_H

#include <stdbool.h>
#include <jansson.h>

#include "output/output.h"
#include "output/text.h"

/* 1234567 as "1,234,567", in every locale; returns buffer. */
const char *row_grouped(json_int_t number, char *buffer, size_t size);

/* 1234567.25 as "1,234,567.250"; returns buffer. */
const char *row_grouped_real(double number, char *buffer, size_t size);

/* The keys of a row of counts: "socket 0, core 1"; "" if there are none. Returns buffer. */
const char *row_name(const json_t *record, char *buffer, size_t size);

/* In percent; 0 of nothing. */
double row_share(json_int_t part, json_int_t whole);

/* A key's value as text without control characters, which must not reach a terminal. */
void row_cell(const json_t *value, char *buffer, size_t size);

/* In front of a block: the time, where there are intervals. */
void row_time(struct text *text, const struct stream *stream, const json_t *record);

/* Whether a member of an entry is a key, not a value. */
bool row_is_key(const char *name);

/* Ends a row whose last column was filled with blanks, which go. */
void row_end(struct text *text);

/* A table of entries: samples, their share of `total`, and the keys; and what --top left out (may be
 * NULL). */
void rows_of_entries(struct text *text, const json_t *entries, json_int_t total);
void row_of_rest(struct text *text, const json_t *rest, json_int_t total);

/* The same of entries with stacks: below each its functions, a line each, from the innermost; and these lines
 * alone. */
void rows_of_stacks(struct text *text, const struct calls *calls, const json_t *entries, json_int_t total);
void row_stack(struct text *text, const struct calls *calls, const json_t *entry);

#endif
