// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the naming of code in files: ELF, or else the texts of kallsyms and of a run-time compiler's map.
 * Whatever the bytes: no crash, no leak, no endless search, and each answer has a name or says why not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "naming/naming.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

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
	struct naming_settings settings = {.lines = true, .memory = MEMORY, .modules = "/dev/null",
					   .debug_dir = "/nonexistent"};
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
			check(naming_jit(naming, path, i * 64));
			check(naming_kernel(naming, 0xffffffff81000000 + i * 64));
		}
	}
	if (naming_memory(naming) > MEMORY)
		abort();
	naming_close(naming);
	close(fd);
	return 0;
}
