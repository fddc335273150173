/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the symbols and lines of an ELF file and its debug file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "confined/code_bytes.h"
#include "confined/lines.h"
#include "confined/symbol_index.h"
#include "naming/debug_file.h"
#include "naming/message.h"
#include "naming/symbols.h"

struct read_file {
	struct symbols symbols;
	struct nameless functions; /* of a stripped file, by its .eh_frame: also those that have a symbol */
	struct segment *segments;  /* the loaded segments with code */
	size_t nr_segments;
	/* Of data, if asked for: symbols, and all loaded segments with their size in memory. */
	struct symbols objects;
	struct segment *loaded;
	size_t nr_loaded;
	struct lines *lines;	   /* NULL: there are none */
	struct code_bytes code;	   /* if types were asked for, and there are lines */
	struct go_lines *go_lines; /* only where there is no DWARF; NULL: there are none */
	enum lines_lack lines_lack;
	/* Of tables that are too large to be among the symbols; NULL: there are none. */
	struct symbol_index *function_index, *object_index;
	/* There was no room for its symbol table, nor for an index of it, or not for all of `functions`. */
	bool left_out;
};

/* What is read beside the functions' symbols. */
struct read_what {
	bool lines, data, types; /* types: the code, by which access.h finds them */
	bool few;		 /* an index is made of smaller symbol tables, too */
	size_t lines_most;	 /* bytes for lines */
};

/* Reads the image, and closes it. All results together take about `most` bytes at most. */
void read_file(struct read_file *file, struct image *image, const struct read_what *what, size_t most,
	       const struct debug_folders *folders);
void read_file_release(struct read_file *file);
void code_bytes_release(struct code_bytes *code);
