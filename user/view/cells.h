/* SPDX-License-Identifier: GPL-2.0-only */
/* The keys of stored entries as text: those that they were aggregated by, and what follows from these. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "output/calls.h"

#define CELL_TEXT_MAX 4096

/* What a row is made of. */
struct cell_source {
	const json_t *record, *entry; /* of a record without entries: both are the record */
	const struct call *call;      /* the function; NULL: the one that the entry's code is in */
	/* The program that was measured, and the name that is shown in its place; NULL: its own. */
	const char *program, *shown_as;
};

/* The function that an entry's code is in: that of `code`, or of a branch's beginning. A frame of NULL: it
 * has none. */
struct call cell_function(const json_t *entry);

/* Writes the text of a key: any member of the entry, "event", or of its function "symbol", "module", "line",
 * "place" or "code". Returns buffer, or NULL if it has no such key. */
const char *cell_text(const struct cell_source *cells, const char *key, char *buffer, size_t size);

/* Whether code was recorded by lines, of which each is an entry. */
bool cell_has_line(const json_t *code);

/* The name of the function in the text of a key: that of "code" has its module, too. */
void cell_symbol(char *name, size_t size, const char *key, const char *text);

/* Adds the names of the keys that an entry has to a set, {name: true}. */
void cell_keys(const struct cell_source *cells, json_t *names);
