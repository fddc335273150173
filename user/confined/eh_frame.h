/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes the unwind table of a file from its .eh_frame in one pass. Whatever the section contains, nothing
 * beyond it is read, and the table has at most two rows for each of its bytes.
 */
#ifndef NHMTAP_EH_FRAME_H
#define NHMTAP_EH_FRAME_H

#include <stddef.h>
#include <linux/types.h>

#include "unwind/table.h"

struct image;

/* A file's .eh_frame, its address at run time (before relocation), and the range of the file's code. */
struct unwind_section {
	const unsigned char *bytes;
	size_t size;
	__u64 address;
	__u64 low, high; /* range of all code: first address, and the one after the last */
	__u64 entry;	 /* the program's entry point, which has no caller; 0: none */
};

/* Makes the table. Returns NULL, or why there is none: a constant sentence. The caller must call
 * unwind_table_release(). */
const char *unwind_table_of_section(struct unwind_table *table, const struct unwind_section *section);
/* The same for a file; 64-bit files only. */
const char *unwind_table_of_image(struct unwind_table *table, const struct image *image);

#endif
