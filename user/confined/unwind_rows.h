/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Collects what the sections of a file say about its functions, each row by row, and makes the file's unwind
 * table of it. If several sections know a function, the one that is read first counts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "base/interned.h"
#include "unwind/table.h"

/* A row as it is first read. The rows of a function are adjacent. */
struct early_row {
	__u32 address; /* minus unwind_rows.low */
	__u32 rule;
};

struct unwind_function {
	__u32 begin, end; /* minus unwind_rows.low */
	size_t first, nr; /* its rows */
};

struct unwind_rows {
	__u64 low, high; /* range of all code: first address, and the one after the last */
	struct unwind_function *functions;
	size_t nr_functions, room_functions;
	size_t nr_known; /* functions of former sections, in order */
	struct early_row *rows;
	size_t nr_rows, room_rows;
	struct interned rules; /* struct unwind_rule */
};

/* Returns NULL, or why no table can be made for code in this range: a constant sentence. */
const char *unwind_rows_begin(struct unwind_rows *rows, __u64 low, __u64 high);
void unwind_rows_release(struct unwind_rows *rows);

/* Begins to read another section. */
void unwind_rows_next_section(struct unwind_rows *rows);

/* Begins a function of at least one byte. Returns false if it is not in the range or already known from
 * another section: then no row may be added. */
bool unwind_rows_function(struct unwind_rows *rows, __u64 begin, __u64 end);

/* Adds a rule that holds from this address of the function on; addresses must not descend. */
void unwind_rows_add(struct unwind_rows *rows, __u64 address, const struct unwind_rule *rule);

/* Nothing is known from this address of the function on. */
void unwind_rows_cut(struct unwind_rows *rows, __u64 end);

/* Makes the table. `entry`: the program's entry point, which has no caller; 0: none. Returns NULL, or why
 * there is no table: a constant sentence. The caller must call unwind_table_release(). */
const char *unwind_rows_finish(struct unwind_rows *rows, __u64 entry, struct unwind_table *table);
