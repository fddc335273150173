/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes values as compact JSON: the same bytes as jansson with JSON_COMPACT and JSON_REAL_PRECISION(15), but
 * faster. jansson checks every list and object for reference loops, with its address as text in a hash table,
 * which takes about a thousand instructions each. The values here are made by nhmtap or read from JSON, and
 * have no loops.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "record/fields.h"

/* A growing text without a 0 at its end. Starts as zeros; the owner frees `text`. */
struct compact {
	char *text;
	size_t used, room;
};

/* Enlarges the buffer so that `size` more bytes fit. Returns where they are to be written. */
char *compact_grow(struct compact *compact, size_t size);
/* Makes room for `size` more bytes, and returns where they are to be written. The caller then adds the number
 * that it wrote to `used`. */
static inline char *compact_reserve(struct compact *compact, size_t size)
{
	return compact->used + size <= compact->room ? compact->text + compact->used
						     : compact_grow(compact, size);
}

/* Appends. `text` may be NULL if size is 0. */
void compact_add(struct compact *compact, const char *text, size_t size);
void compact_add_text(struct compact *compact, const char *text);
void compact_add_integer(struct compact *compact, json_int_t number);
void compact_add_value(struct compact *compact, const json_t *value);
/* Appends a member of an object. `separator` comes before it: '{' or ','. */
void compact_add_member(struct compact *compact, char separator, const char *name, const json_t *value);
/* Appends the value of a member. */
void compact_add_field(struct compact *compact, const struct field *field);
/* Writes the value there, over that of `before`, if it has a number and takes the same `size` bytes. Returns
 * whether it does. */
bool compact_overwrite(char *at, size_t size, __u64 before, const struct field *field);
/* Appends the member with its name, after a comma. */
void compact_add_named(struct compact *compact, const struct field *field);
/* Appends the members of a list, each after a comma. */
void compact_add_fields(struct compact *compact, const struct fields *fields);
/* Makes an object of the members since `begun`, each of which has a comma before it. */
static inline void compact_close(struct compact *compact, size_t begun)
{
	size_t first = compact->used == begun; /* there is none */
	char *at = compact_reserve(compact, first + 1);

	compact->text[begun] = '{';
	at[first] = '}';
	compact->used += first + 1;
}

/* The number of bytes of a value in this form. */
size_t compact_bytes(const json_t *value);
