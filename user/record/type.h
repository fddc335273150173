/* SPDX-License-Identifier: GPL-2.0-only */
/* What is known of each type of record: the list at which it may be cut, the members that every part keeps,
 * and where it has code. Types register themselves, in the file that makes their records. */
#pragma once

#include <stddef.h>
#include <jansson.h>

#define KEPT_MOST 16
#define CODE_MOST 4

struct record_type {
	const char *name;	     /* "profile" */
	const char *list;	     /* list at which it may be cut into parts; NULL: never cut */
	const char *kept[KEPT_MOST]; /* members of every part, beside type and the output's own; ended by
					NULL. None: all members */
	const char *code[CODE_MOST]; /* members of the list's elements that are code, "" for the element
					itself; ended by NULL */
};

#define REGISTER_RECORD(item)                                                                                \
	static const struct record_type *const registered_##item                                             \
		__attribute__((section("record_types"), used)) = &(item)

/* The type of a record; NULL if it is never cut and has no code. */
const struct record_type *record_type_of(const json_t *record);
