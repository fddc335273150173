/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include <stddef.h>

struct image;
struct symbols;

/* Adds a symbol for each entry of the procedure linkage table, FUNCTION@plt: by the relocation of the slot
 * that the entry jumps through, so for whatever linker and kind of table. Must be called after the file's own
 * symbols were added, and before symbols_finish(). Sections larger than `most` bytes are left out. */
void linkage_add_symbols(const struct image *image, struct symbols *symbols, size_t most);
