/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How to step from a function to its caller, for each address of a file: rows made of its .eh_frame in one
 * pass. Whatever the section holds, nothing beyond it is read, and there are no more than two rows for each
 * of its bytes.
 */
#ifndef NHMTAP_UNWIND_TABLE_H
#define NHMTAP_UNWIND_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "unwind.h"

struct image;

struct unwind_table {
	__u64 base; /* the address of the first page: of the file, not of a process */
	struct unwind_page *pages;
	size_t nr_pages;
	__u32 *rows; /* see bpf/unwind.h */
	size_t nr_rows;
	struct unwind_rule *rules;
	size_t nr_rules;
};

/* Where a section lies when the file runs, and where the file has code. */
struct unwind_section {
	const unsigned char *bytes;
	size_t size;
	__u64 address;
	__u64 low, high; /* of all code: the first address, and the one behind the last */
	__u64 entry;	 /* where the program begins: nobody has called it; 0: nowhere */
};

/* Makes the table. Returns NULL, or why there is none: a constant sentence. The caller owns what is in the
 * table up to unwind_table_release(). */
const char *unwind_table_of_section(struct unwind_table *table, const struct unwind_section *section);
/* The same of a file; 64-bit ones only. */
const char *unwind_table_of_image(struct unwind_table *table, const struct image *image);

/*
 * A table that another process made: its pages, rules and rows, `counts` of each, follow each other in the
 * memory, which stays the caller's and must live as long. Returns false where something in it leads out of
 * it.
 */
bool unwind_table_of_memory(struct unwind_table *table, __u64 base, const __u64 counts[3], void *memory,
			    size_t size);

/* Of one that was made here. */
void unwind_table_release(struct unwind_table *table);

/* The rule at an address of the file; one of FRAME_NONE where there is none. As programs look it up. */
struct unwind_rule unwind_table_at(const struct unwind_table *table, __u64 address);

#endif
