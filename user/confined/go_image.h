/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds Go's table of functions (.gopclntab) in an ELF file. Every Go program has it, even if it is stripped,
 * because the runtime needs it for its own tracebacks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct gopclntab;
struct image;
struct source_place;
struct symbols;

/* Calls each() for the sections that may have the table, until it returns true. `table` has bytes, size and
 * text; it is valid during the call. Sections larger than `most` bytes are left out. Returns whether each()
 * returned true. */
bool go_image_tables(const struct image *image, size_t most,
		     bool (*each)(void *context, struct gopclntab *table), void *context);

/* Adds Go's functions, by the names that Go's own tracebacks show. */
void go_image_add_symbols(const struct image *image, struct symbols *symbols, size_t most);

/* The lines of a Go program, without DWARF. */
struct go_lines;

/* Returns NULL if it has none, or none that take at most `most` bytes. */
struct go_lines *go_lines_open(const struct image *image, size_t most);
void go_lines_close(struct go_lines *lines);
size_t go_lines_bytes(const struct go_lines *lines);

/* Finds the file and line of an address; the name isn't set. Returns whether there is one. */
bool go_lines_find(const struct go_lines *lines, __u64 address, struct source_place *place);
