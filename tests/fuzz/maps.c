// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the texts of kallsyms, /proc/modules and perf-PID.map, and jitdump files: no crash, no leak. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "confined/jit_lines.h"
#include "naming/demangle.h"
#include "naming/jitdump.h"
#include "naming/maps.h"
#include "naming/naming.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

#define PLACES 64

static int file_of(const void *data, size_t size, char *path, size_t room)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	if (fd < 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	snprintf(path, room, "/proc/self/fd/%d", fd);
	return fd;
}

static void look(const struct symbols *symbols, __u64 from)
{
	char text[NAMING_SYMBOL_MAX + 1];

	for (int i = 0; i < PLACES; i++) {
		const struct symbol *symbol = symbols_find(symbols, from + i * 64);

		if (symbol && demangle(symbol_name(symbols, symbol), text, sizeof(text)) > NAMING_SYMBOL_MAX)
			abort();
	}
}

/* The text from a line "=" on is that of /proc/modules. */
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	const char *split = memmem(data, size, "=\n", 2);
	size_t first = split ? (size_t)(split - (const char *)data) : size;
	char kallsyms[64], modules[64];
	struct symbols jit = {0}, dumped = {0}, kernel = {0};
	int fd = file_of(data, first, kallsyms, sizeof(kallsyms));
	bool half;
	int rest = file_of(data + first, size - first, modules, sizeof(modules));

	kernel_symbols(&kernel, kallsyms, modules);
	look(&kernel, 0xffffffff81000000);
	symbols_release(&kernel);
	jitdump_symbols(&dumped, dup(fd), 1 << 20);
	look(&dumped, 0x1000);
	symbols_release(&dumped);
	jit_lines_close(jit_lines_open(fd, 1 << 20));
	jit_symbols(&jit, fd, 1 << 20, size & 1,
		    &half); /* closes fd, whose offset is 0: pwrite() leaves it alone */
	look(&jit, 0x1000);
	symbols_release(&jit);
	close(rest);
	return 0;
}
