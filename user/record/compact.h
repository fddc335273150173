/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Values as compact JSON, the same bytes as jansson's own (JSON_COMPACT, JSON_REAL_PRECISION(15)). jansson
 * checks every list and object for loops, by its printed address in a hash table, which takes a thousand
 * instructions each. Values that are made here or read from JSON have no loops.
 */
#ifndef NHMTAP_COMPACT_H
#define NHMTAP_COMPACT_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "record/fields.h"

/* Text that grows. Starts as zeros; `text` is free()d by the owner, and not terminated. */
struct compact {
	char *text;
	size_t used, room;
};

/* Has room for so many bytes more, where there is too little. */
char *compact_grow(struct compact *compact, size_t size);
/* Makes room for so many bytes behind what is there, and returns where they go; who writes them adds them
 * to `used`. */
static inline char *compact_reserve(struct compact *compact, size_t size)
{
	return compact->used + size <= compact->room ? compact->text + compact->used
						     : compact_grow(compact, size);
}

/* The text may be NULL if its size is 0. */
void compact_add(struct compact *compact, const char *text, size_t size);
void compact_add_text(struct compact *compact, const char *text);
void compact_add_integer(struct compact *compact, json_int_t number);
void compact_add_value(struct compact *compact, const json_t *value);
/* A member of an object, with what stands before it: '{' or ','. */
void compact_add_member(struct compact *compact, char separator, const char *name, const json_t *value);
/* The members of a list, with a comma before each. */
void compact_add_fields(struct compact *compact, const struct fields *fields);

/* How long a value is so, in bytes. */
size_t compact_bytes(const json_t *value);

#endif
