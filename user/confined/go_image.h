/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds Go's table of functions (.gopclntab) in an ELF file. Every Go program has it, even if it is stripped,
 * because the runtime needs it for its own tracebacks. */
#ifndef NHMTAP_GO_IMAGE_H
#define NHMTAP_GO_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

struct gopclntab;
struct image;
struct symbols;

/* Calls each() for the sections that may have the table, until it returns true. `table` has bytes, size and
 * text; it is valid during the call. Sections larger than `most` bytes are left out. Returns whether each()
 * returned true. */
bool go_image_tables(const struct image *image, size_t most,
		     bool (*each)(void *context, struct gopclntab *table), void *context);

/* Adds Go's functions, by the names that Go's own tracebacks show. */
void go_image_add_symbols(const struct image *image, struct symbols *symbols, size_t most);

#endif
