/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds symbols in a table that is too large to be kept. The file stays open, and names are read from it when
 * they are asked for. What is kept is a bitmap: which blocks of the table have symbols of which stretch of
 * addresses. It has a fixed size, however large the table is; the smaller it is, the more of the table is
 * read for a name. The names are the same as from the whole table, unless a function without a size and a
 * label within another function begin at one address.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "naming/image.h"

struct symbol_index;

/* Reads the table of this kind (SHT_SYMTAB or SHT_DYNSYM) once in pieces, for its functions, or for its data.
 * Returns NULL if there is none, if it can't be read, or if the index would take more than `most` bytes. The
 * image, which must be a file, may be closed afterwards. */
struct symbol_index *symbol_index_open(const struct image *image, __u32 kind, bool data, size_t most);
void symbol_index_close(struct symbol_index *index); /* NULL is allowed */

size_t symbol_index_bytes(const struct symbol_index *index); /* NULL: 0 */

struct indexed_symbol {
	const char *name; /* valid until the next call for any index; NULL: there is none */
	__u64 begin;
	bool endless; /* its end is not known: the next symbol of the table, or its section, ends it */
};

/* Finds the symbol that contains an address. */
struct indexed_symbol symbol_index_find(struct symbol_index *index, __u64 address);
