/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The unwind table of a file: how to step from a function to its caller, for each address. The worker process
 * makes it from .eh_frame, .gopclntab or .debug_frame: confined/unwind_image.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "unwind.h"

struct unwind_table {
	__u64 base; /* address of the first page, in the file's own addresses */
	struct unwind_page *pages;
	size_t nr_pages;
	__u32 *rows; /* see bpf/unwind.h */
	size_t nr_rows;
	struct unwind_rule *rules;
	size_t nr_rules;
};

/*
 * Uses a table that another process has made. Its pages, rules and rows, `counts` of each, follow each other
 * in the memory. The caller owns the memory, which must live as long as the table. Returns false if an index
 * in it is out of range.
 */
bool unwind_table_of_memory(struct unwind_table *table, __u64 base, const __u64 counts[3], void *memory,
			    size_t size);

/* Frees a table that was made in this process. */
void unwind_table_release(struct unwind_table *table);

/* The rule at an address of the file, looked up as BPF programs do; FRAME_NONE if there is none. */
struct unwind_rule unwind_table_at(const struct unwind_table *table, __u64 address);
