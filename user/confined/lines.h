/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Source files, lines and inlined functions, from DWARF by libdw. The number of steps is bounded by the
 * size of the file, whatever the DWARF contains.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "naming/debug_file.h"
#include "naming/image.h"
#include "naming/message.h"

struct lines;

/* A function that contains the address. */
struct source_place {
	const char *function; /* its linkage name, else its plain name; NULL: not known */
	const char *file;     /* NULL: not known */
	const char *
		folder; /* that the file's path begins at; NULL: the path is absolute, or that is not known */
	unsigned int line; /* 0: not known */
	__u64 entry;	   /* where the function begins; 0 for inlined ones */
};

/*
 * Opens the DWARF of an image; it may take at most `most` bytes of memory. `alternate`: its alternate debug
 * file (.gnu_debugaltlink), NULL if there is none. Takes ownership of both. Files of split DWARF are opened
 * by `folders` when an address in them is looked for; what the pointer names need not last. Returns NULL if
 * there is no DWARF, or if it takes more (`no_room`).
 */
struct lines *lines_open(struct image *image, struct image *alternate, const struct debug_folders *folders,
			 size_t most, bool *no_room);
void lines_close(struct lines *lines);

/* Whether functions of a unit are in a .dwo or .dwp file. */
bool lines_split(const struct lines *lines);

/* What is not known of the address that was looked for last, because it is in such a file, or because it
 * takes too much memory. */
enum lines_lack lines_lack(const struct lines *lines);

/*
 * Finds the functions that contain the address: inlined ones first, from the innermost, and the function
 * itself last. If there are more than `most`, the innermost are dropped. Returns their number; 0 if the
 * address is in no compiled unit. Texts are valid until the next call.
 */
size_t lines_find(struct lines *lines, __u64 address, struct source_place *places, size_t most);

/* The memory in use, approximately. */
size_t lines_bytes(const struct lines *lines);
