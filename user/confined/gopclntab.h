/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads what .gopclntab, which every Go program has even if it is stripped, says about its functions: their
 * names, frames and lines. Go's programs have no .eh_frame, and their innermost functions no frame pointer.
 * Whatever the section contains, nothing beyond it is read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct unwind_rows;

struct gopclntab {
	const unsigned char *bytes;
	size_t size;
	__u64 text; /* where Go's code begins, which addresses are relative to since Go 1.18 */
	/* Copies the first bytes of the code at an address; returns how many. */
	size_t (*code)(const void *context, __u64 address, unsigned char *bytes, size_t size);
	const void *context;
};

/* Where the table begins: linkers may put other data before it. Returns `size` if there is none. */
size_t gopclntab_find(const unsigned char *bytes, size_t size);

/* Where the table's header has the beginning of Go's code, in bytes; 0: it does not have it. */
size_t gopclntab_text_at(const unsigned char *bytes, size_t size);

/* All names, one after the other, each with a zero byte but perhaps the last. `size`: 0 if there are none. */
const char *gopclntab_names(const struct gopclntab *table, size_t *size);

/* Calls each() for every function that has code. `name`: where its name begins in gopclntab_names(); may be
 * beyond its end. `code` isn't needed. */
void gopclntab_functions(const struct gopclntab *table,
			 void (*each)(void *context, __u64 begin, __u64 end, size_t name), void *context);

/* Where the code at an address comes from. Code that the compiler has inlined has its own file and line, and
 * the name of the function around it. */
struct go_line {
	const char *file; /* in the table */
	__u32 line;	  /* 0: not known */
};

/* Returns whether an address is in a function that has a file. `code` isn't needed. */
bool gopclntab_line(const struct gopclntab *table, __u64 address, struct go_line *line);

/* Adds the rows of all functions. */
void gopclntab_read(struct unwind_rows *rows, const struct gopclntab *table);
