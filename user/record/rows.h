/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A long list of a record as JSON text. Mostly it is written once and never looked at, and a tree of
 * jansson's objects costs thirty times the instructions and ten times the memory of its text.
 *
 * In the record the list is a JSON string, which no list is otherwise: the number of elements, their sizes,
 * and their text with commas between them. rows_open() makes a list of it, for whoever reads its elements.
 */
#pragma once

#include <jansson.h>
#include <linux/types.h>

#include "record/compact.h"

/* A list that is being made. Starts as zeros. */
struct rows {
	struct compact text;
	size_t begun; /* where the last element begins */
	__u32 *sizes; /* bytes of each element */
	size_t nr, room;
};

/* Begins an element, an object. Its members are appended to the result, each after a comma; then rows_end()
 * must follow. */
struct compact *rows_begin(struct rows *rows);
void rows_end(struct rows *rows);

void rows_release(struct rows *rows);

/* Puts the list into a record, and releases `rows`. */
void rows_put(struct rows *rows, json_t *record, const char *name);

/* A list in a record as rows_put() put it. Texts and sizes are the record's. */
struct rows_text {
	size_t nr;
	const __u32 *sizes;
	const char *text;
	size_t size;
};

/* Returns false if the value (NULL: there is none) is no such list. */
bool rows_text(const json_t *value, struct rows_text *rows);

/* A member of an element: parts of its text. */
struct rows_member {
	const char *name; /* without its quotes */
	size_t name_length;
	const char *value;
	size_t value_length;
};

/* Reads the member behind `at`, the '{' or ',' before it. Returns the ',' or '}' behind it; NULL if the
 * object has no members. */
const char *rows_member(const char *at, struct rows_member *member);

/* An element, by its text: a new reference. */
json_t *rows_element(const char *text);

/* If the record's member of this name is such a list, makes it a list of jansson's. */
void rows_open(json_t *record, const char *name);
