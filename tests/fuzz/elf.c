// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the naming of code in ELF files, in memory: a file for each input is most of the cost. Whatever the
 * bytes: no crash, no leak, no endless search, and each answer has a name or says why not.
 */
#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "naming/named_source.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t most, unsigned int seed);
size_t LLVMFuzzerMutate(unsigned char *data, size_t size, size_t most);

static void check(const struct name *name)
{
	if (!name->nr == !name->why)
		abort();
	for (size_t i = 0; i < name->nr; i++)
		if ((name->frames[i].symbol && strlen(name->frames[i].symbol) > NAMING_SYMBOL_MAX) ||
		    (name->frames[i].file && !name->frames[i].file[0] && name->frames[i].line > 1 << 30))
			abort();
}

#define MEMORY	 (64UL << 20)
#define PLACES	 16 /* of a segment */
#define SEGMENTS 4

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static const struct naming_settings settings = {
		.lines = true, .memory = MEMORY, .debug_dir = "/nonexistent"};
	static const struct place place = {.path = "/nonexistent/file"};
	char *copy = malloc(size + 1);
	struct source source = {0};
	struct image image;

	memcpy(copy, data, size);
	if (image_from_memory(&image, copy, size))
		return 0;
	source_load(&source, &image, &place, &settings);
	for (size_t i = 0; i < source.nr_segments && i < SEGMENTS; i++)
		for (size_t at = 0; at < PLACES; at++)
			check(source_name_at(&source, source.segments[i].address +
							      source.segments[i].size / PLACES * at));
	if (source_bytes(&source) > MEMORY)
		abort();
	source_empty(&source);
	return 0;
}

/* Where a section's bytes are; false if they are not in the file. */
static bool section_of(const unsigned char *data, size_t size, unsigned int number, size_t *at,
		       size_t *length)
{
	Elf64_Ehdr header;
	Elf64_Shdr section;

	if (size < sizeof(header) || memcmp(data, ELFMAG, SELFMAG))
		return false;
	memcpy(&header, data, sizeof(header));
	if (!header.e_shnum || header.e_shoff > size ||
	    size - header.e_shoff < header.e_shnum * sizeof(section))
		return false;
	memcpy(&section, data + header.e_shoff + number % header.e_shnum * sizeof(section), sizeof(section));
	*at = section.sh_offset;
	*length = section.sh_size;
	return section.sh_type != SHT_NOBITS && *at < size && *length && *length <= size - *at;
}

/* Most often within one section, so that what is around it stays an ELF file. */
size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t most, unsigned int seed)
{
	size_t at, length;

	if (seed % 4 && section_of(data, size, seed >> 8, &at, &length)) {
		LLVMFuzzerMutate(data + at, length, length);
		return size;
	}
	return LLVMFuzzerMutate(data, size, most);
}
