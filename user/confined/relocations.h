/* SPDX-License-Identifier: GPL-2.0-only */
/* The relocations of a file that the dynamic linker applies, and the symbols that they refer to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <gelf.h>
#include <linux/types.h>

struct image;

struct relocation {
	__u64 slot, symbol, type, addend;
};

typedef void relocation_visit(void *context, const struct relocation *relocation);

enum relocations_kind {
	RELOCATIONS_LINKAGE, /* of the procedure linkage table: .rela.plt, .rel.plt */
	RELOCATIONS_DATA,    /* .rela.dyn, .rel.dyn; those that only add the place of the file are left out */
};

/* Visits the relocations of a section of this kind, in their order. There are none if the file has no such
 * section, or if it is larger than `most` bytes. */
void relocations_each(const struct image *image, const char *section, enum relocations_kind kind, size_t most,
		      relocation_visit *visit, void *context);

/* The symbols that relocations refer to: .dynsym. */
struct dynamic {
	char *table; /* NULL: there are none */
	size_t nr;
	bool wide;	   /* the symbols are those of 64 bits */
	GElf_Shdr strings; /* the section with their names */
};

/* Reads the symbols, of at most `most` bytes. */
void dynamic_read(struct dynamic *dynamic, const struct image *image, size_t most);
void dynamic_release(struct dynamic *dynamic);

/* Takes the symbol of this number; its name is an offset in the strings, unchecked. Returns false if there is
 * no such symbol; number 0 is none. */
bool dynamic_symbol(const struct dynamic *dynamic, __u64 number, GElf_Sym *symbol);
