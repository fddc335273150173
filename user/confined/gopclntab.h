/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads what .gopclntab, which every Go program has even if it is stripped, says about the frames of its
 * functions. Go's programs have no .eh_frame, and their innermost functions no frame pointer. Whatever the
 * section contains, nothing beyond it is read.
 */
#ifndef NHMTAP_GOPCLNTAB_H
#define NHMTAP_GOPCLNTAB_H

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

void gopclntab_read(struct unwind_rows *rows, const struct gopclntab *table);

#endif
