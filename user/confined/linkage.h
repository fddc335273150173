/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct image;
struct symbols;

/* Where the strings of .dynsym begin among those of the symbols, if they are there; they are read once more
 * otherwise. */
struct dynamic_strings {
	bool there;
	size_t base;
};

/* Adds a symbol for each entry of the procedure linkage table, FUNCTION@plt: by the relocation of the slot
 * that the entry jumps through, so for whatever linker and kind of table. Must be called after the file's own
 * symbols were added, and before symbols_finish(). Sections larger than `most` bytes are left out. */
void linkage_add_symbols(const struct image *image, struct symbols *symbols,
			 const struct dynamic_strings *known, size_t most);
