/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lines of JSON of which each has mostly the members of the one before, and most of their values: samples of
 * a stream. The text of the last line is kept, and only what differs is written into it. Nothing of what a
 * line was made of is kept, so it may have gone since.
 */
#pragma once

#include <stddef.h>

#include "record/compact.h"
#include "record/fields.h"

#define ALIKE_LISTS 2 /* that a line is made of at most */
#define ALIKE_MOST  (ALIKE_LISTS * FIELDS_MOST)

/* Starts as zeros; alike_release() frees it. */
struct alike_lines {
	struct compact text; /* a comma before each member */
	struct compact value;
	size_t nr;
	struct alike_member {
		enum field_kind kind;
		size_t name_length, at, length; /* of the value: where it is, and its bytes of JSON */
		__u64 plain;			/* the number; of a text, its bytes before they became JSON */
	} list[ALIKE_MOST];
	/* The lists that the line before was made of. */
	struct alike_list {
		__u64 shape, version; /* shape 0: not known */
	} lists[ALIKE_LISTS];
	/* Up to where the line is made. */
	struct alike_place {
		size_t lists, nr;
	} done;
};

void alike_release(struct alike_lines *alike);

static inline void alike_begin(struct alike_lines *alike)
{
	alike->done = (struct alike_place){0};
}

/* The bytes of so many members. */
static inline size_t alike_bytes(const struct alike_lines *alike, size_t nr)
{
	return nr ? alike->list[nr - 1].at + alike->list[nr - 1].length : 0;
}

/* Adds members to the line that was begun. */
void alike_add(struct alike_lines *alike, const struct fields *fields);

/* Ends the line, an object and a newline. Returns its size; it is at alike->text.text. */
size_t alike_end(struct alike_lines *alike);
