/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An ELF file that is read, never mapped: if it is truncated meanwhile, a read fails, whereas a mapping would
 * kill the program with SIGBUS. Of any class, little endian.
 */
#ifndef NHMTAP_IMAGE_H
#define NHMTAP_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <gelf.h>
#include <linux/types.h>
#include <sys/types.h>

#include "naming/symbols.h"

struct image {
	int fd;	      /* -1: it is in memory */
	char *memory; /* xmalloc()ed, NULL: it is in a file */
	__u64 size;
	uid_t owner; /* of the file */
	Elf *elf;
	struct spans code; /* sections of code, to numbers of the ends */
	__u64 *code_ends;
};

/* Both take over what they are given, also when they fail. Return NULL, or why it can't be used: a
 * constant sentence. */
const char *image_from_file(struct image *image, int fd);
const char *image_from_memory(struct image *image, char *memory, size_t size);
/* The code that the kernel maps into each process, of this process; likewise. */
const char *image_from_vdso(struct image *image);
void image_close(struct image *image);

#define BUILD_ID_MAX 64 /* bytes; two letters each */

/* Writes it as hex; "" if there is none. */
void image_build_id(const struct image *image, char text[2 * BUILD_ID_MAX + 1]);

/* A section's name, "" if it has none. */
const char *image_section_name(const struct image *image, const GElf_Shdr *header);

/* A section by its name, NULL if there is none. */
Elf_Scn *image_section(const struct image *image, const char *name, GElf_Shdr *header);

/* The section's bytes, xmalloc()ed; NULL if it has none, has more than `most`, or they can't be read. */
char *image_read_section(const struct image *image, const GElf_Shdr *header, size_t most);

/* Where code of the file is when it runs. */
struct segment {
	__u64 offset, size; /* in the file */
	__u64 address;
};

/* Its segments with code, xmalloc()ed. */
struct segment *image_segments(const struct image *image, size_t *nr);

/*
 * Adds the symbols of code of the table of this kind (SHT_SYMTAB, SHT_DYNSYM). Tables larger than `most`
 * bytes are left out. Returns whether there was one.
 */
bool image_add_symbols(const struct image *image, __u32 kind, struct symbols *symbols, size_t most);

/* Adds a name for each entry of the procedure linkage table: "puts@plt". */
void image_add_plt(const struct image *image, struct symbols *symbols, size_t most);

/* Where the code ends that an address is in: symbols_finish() asks. */
__u64 image_end_of_code(const void *image, __u64 address);

/* The image in .gnu_debugdata, which has the symbols that .dynsym lacks. Returns whether there is one. */
bool image_mini(const struct image *image, struct image *mini, size_t most);

#endif
