/* SPDX-License-Identifier: GPL-2.0-only */
/* An ELF file. It is read, not mapped: if it is truncated meanwhile, a read fails, whereas access to a
 * mapping kills the process with SIGBUS. Only image_map() does otherwise. 32-bit and 64-bit files are
 * accepted, little endian only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <gelf.h>
#include <linux/types.h>
#include <sys/types.h>

#include "naming/symbols.h"

struct image {
	int fd;	      /* -1: the file is in memory */
	char *memory; /* xmalloc()ed; NULL: use `fd` */
	__u64 size;
	uid_t owner; /* of the file */
	Elf *elf;
	bool mapped;	   /* see image_map() */
	struct spans code; /* sections with code; `what` is an index of code_ends */
	__u64 *code_ends;
};

/* Both take ownership of the descriptor or the memory, even on failure. They return NULL, or the reason why
 * the file can't be used, as a constant sentence. */
const char *image_from_file(struct image *image, int fd);
const char *image_from_memory(struct image *image, char *memory, size_t size);
/* The same for the vdso of this process: the code that the kernel maps into each process. */
const char *image_from_vdso(struct image *image);
void image_close(struct image *image);

/*
 * Lets libelf take the sections from a mapping of the file, so that they are no memory of this process: the
 * kernel has them in its cache, and drops them there if memory is short. If the file is truncated meanwhile,
 * or its contents change, the process may die, so this is for the worker alone. What was taken from the
 * image's `elf` before is not valid any more. Returns false, and changes nothing, if the image is no open
 * file.
 */
bool image_map(struct image *image);
/* Gives back the memory that pages of the mapping take in this process until they are used again. */
void image_rest(const struct image *image);

#define BUILD_ID_MAX 64 /* bytes; two hex digits each */

/* Writes the build-id as hex; "" if there is none. */
void image_build_id(const struct image *image, char text[2 * BUILD_ID_MAX + 1]);

/* Returns a section's name; "" if it has none. */
const char *image_section_name(const struct image *image, const GElf_Shdr *header);

/* Finds a section by its name; NULL if there is none. */
Elf_Scn *image_section(const struct image *image, const char *name, GElf_Shdr *header);

/* The same for the first section of a kind (SHT_…). */
Elf_Scn *image_section_of_kind(const struct image *image, __u32 kind, GElf_Shdr *header);

/* Reads a part of the file. Returns false if it does not have as many bytes there. */
bool image_read(const struct image *image, void *to, size_t size, __u64 offset);

/* Reads a section into xmalloc()ed memory. NULL if it is empty, larger than `most`, or can't be read. */
char *image_read_section(const struct image *image, const GElf_Shdr *header, size_t most);

/* A part of the file with code, and its address at run time (before relocation). */
struct segment {
	__u64 offset, size; /* in the file */
	__u64 address;
};

/* Returns the loaded segments with code, xmalloc()ed. */
struct segment *image_segments(const struct image *image, size_t *nr);
/* The same for all loaded segments, with as many bytes as they have in memory. */
struct segment *image_loaded(const struct image *image, size_t *nr);

/* Adds the function symbols of the table of this kind (SHT_SYMTAB or SHT_DYNSYM). A table larger than `most`
 * bytes is not read. Returns whether the image has such a table. */
bool image_add_symbols(const struct image *image, __u32 kind, struct symbols *symbols, size_t most);

/* The same for the symbols of data whose size is known. */
bool image_add_objects(const struct image *image, __u32 kind, struct symbols *objects, size_t most);

/* A table of symbols that is read in pieces. */
struct symbol_table {
	__u64 offset, nr;	     /* in the file; symbols */
	size_t each;		     /* bytes of a symbol */
	__u64 strings, strings_size; /* its names: offset in the file, bytes */
	bool *code;		     /* whether each section has code; NULL: the symbols of data are wanted */
	size_t nr_code;
};

/* Finds the table of this kind, for its functions, or for its data. Returns whether the image has one. The
 * table must be released. */
bool image_symbol_table(const struct image *image, __u32 kind, bool data, struct symbol_table *table);
void symbol_table_release(struct symbol_table *table);

/* Takes symbol number `i` from bytes of the table. Its name is an offset in the table's strings. Returns
 * whether it is one that is wanted. */
bool symbol_in_table(const struct symbol_table *table, const char *bytes, size_t i,
		     struct found_symbol *found);

/* Whether the image has a table of this kind that is larger than `most` bytes, or whose texts are. */
bool image_symbols_exceed(const struct image *image, __u32 kind, size_t most);

/* Returns the end of the code section that contains the symbol's address; a callback for symbols_finish(). */
__u64 image_end_of_code(const void *image, const struct found_symbol *symbol);

/* Opens the image in .gnu_debugdata, which has symbols that .dynsym lacks. Returns whether there is one. */
bool image_mini(const struct image *image, struct image *mini, size_t most);
