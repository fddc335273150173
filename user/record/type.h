/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What each type of record says of itself, once: which list it may be cut at, what every part keeps,
 * and where it holds code. Types register themselves, in the file that makes their records.
 */
#ifndef NHMTAP_RECORD_TYPE_H
#define NHMTAP_RECORD_TYPE_H

#include <stddef.h>
#include <jansson.h>

#define KEPT_MOST 14
#define CODE_MOST 4

struct record_type {
	const char *name; /* "profile" */
	const char *list; /* the member (an array) at which it may be cut into parts; NULL: it is never cut */
	const char *kept[KEPT_MOST]; /* members that all parts carry, besides type and what the output
				      * adds; ended by NULL. None: all members */
	const char *code[CODE_MOST]; /* members of the list's elements that are code, "" for the element
				      * itself; ended by NULL */
};

#define REGISTER_RECORD(item)                                                                                \
	static const struct record_type *const registered_##item                                             \
		__attribute__((section("record_types"), used)) = &(item)

/* The type of a record; NULL for those that are never cut and hold no code. */
const struct record_type *record_type_of(const json_t *record);

#endif
