/* SPDX-License-Identifier: GPL-2.0-only */
/* How fuzz targets of ELF files change their inputs. */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <string.h>

size_t LLVMFuzzerMutate(unsigned char *data, size_t size, size_t most);

/* The position of a section's bytes. Returns false if they are not in the file. */
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

/* Most changes stay within one section, so that the rest remains a valid ELF file. */
static size_t mutate_section(unsigned char *data, size_t size, size_t most, unsigned int seed)
{
	size_t at, length;

	if (seed % 4 && section_of(data, size, seed >> 8, &at, &length)) {
		LLVMFuzzerMutate(data + at, length, length);
		return size;
	}
	return LLVMFuzzerMutate(data, size, most);
}
