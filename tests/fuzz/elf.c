// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the naming of code in files: ELF, or else the texts of kallsyms and of a run-time compiler's map.
 * Whatever the bytes: no crash, no leak, no endless search, and each answer has a name or says why not.
 */
#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "naming/naming.h"

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

#define MEMORY (64UL << 20)
#define PLACES 64

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct naming_settings settings = {
		.lines = true, .memory = MEMORY, .modules = "/dev/null", .debug_dir = "/nonexistent"};
	int fd = memfd_create("elf", MFD_CLOEXEC);
	struct naming *naming;
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	settings.kallsyms = path;
	naming = naming_open(&settings);
	if (size >= 4 && !memcmp(data, "\177ELF", 4)) {
		for (size_t i = 0; i < PLACES; i++)
			check(naming_file(naming, path, NULL, size * i / PLACES));
	} else {
		for (size_t i = 0; i < PLACES; i++) {
			check(naming_jit(naming, path, getuid(), i * 64));
			check(naming_kernel(naming, 0xffffffff81000000 + i * 64));
		}
	}
	if (naming_memory(naming) > MEMORY)
		abort();
	naming_close(naming);
	close(fd);
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
