/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Source files, lines and inlined functions, from DWARF by libdw. The number of steps is bounded by the
 * size of the file, whatever the DWARF contains.
 */
#ifndef NHMTAP_LINES_H
#define NHMTAP_LINES_H

#include <stddef.h>
#include <linux/types.h>

#include "naming/image.h"

struct lines;

/* A function that the address is in. */
struct source_place {
	const char *function; /* its linkage name, or its plain one; NULL: not known */
	const char *file;     /* NULL: not known */
	const char *
		folder; /* that the file's path begins at; NULL: the path is absolute, or that is not known */
	unsigned int line; /* 0: not known */
	__u64 entry;	   /* where it begins; 0 of inlined ones */
};

/*
 * Of an image with DWARF that takes at most `most` bytes. `alternate`: the image that it shares parts
 * with (.gnu_debugaltlink), NULL if there is none. Takes over both; NULL if there is no DWARF, or too
 * much.
 */
struct lines *lines_open(struct image *image, struct image *alternate, size_t most);
void lines_close(struct lines *lines);

/*
 * Fills in what the address is in, innermost inlined first, the function itself last, at most `most`
 * (the outermost are kept). Returns how many; 0 if it is in no compiled unit. Texts live as long as the
 * lines.
 */
size_t lines_find(struct lines *lines, __u64 address, struct source_place *places, size_t most);

/* About so much memory is taken. */
size_t lines_bytes(const struct lines *lines);

#endif
