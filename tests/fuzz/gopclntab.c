// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the table of Go's functions: a .gopclntab of any bytes makes a consistent table for unwinding, with
 * no more rows than its size allows, and functions with code. The first bytes of the input choose the format
 * and make the header lead into the section, so that the other bytes reach the parser.
 */
#include <stdlib.h>
#include <string.h>

#include "confined/gopclntab.h"
#include "unwinding.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

#define HEADER 72
#define CHOICE 16 /* bytes of the input that are not part of the section */

struct chosen {
	unsigned int format;
	unsigned short nr, names, units, files, distances, functions;
};

static size_t code(const void *context, __u64 address, unsigned char *bytes, size_t size)
{
	const struct gopclntab *table = context;
	size_t at = address % table->size, left = table->size - at;

	size = size < left ? size : left;
	memcpy(bytes, table->bytes + at, size);
	return size;
}

static void put(unsigned char *at, __u64 value)
{
	memcpy(at, &value, sizeof(value));
}

static void make_header(unsigned char *bytes, size_t size, const struct chosen *chosen)
{
	static const __u32 magics[] = {0xfffffffa, 0xfffffff0, 0xfffffff1};
	__u32 magic = magics[chosen->format % 3];
	size_t first =
		magic == magics[0] ? 24 : 32; /* offsets of names, and then of distances and functions */

	memcpy(bytes, &magic, sizeof(magic));
	bytes[6] = 1;
	bytes[7] = 8;
	put(bytes + 8, chosen->nr % (size / 8 + 1));
	put(bytes + first, chosen->names % size);
	put(bytes + first + 8, chosen->units % size);
	put(bytes + first + 16, chosen->files % size);
	put(bytes + first + 24, chosen->distances % size);
	put(bytes + first + 32, chosen->functions % size);
}

static void check_function(void *context, __u64 begin, __u64 end, size_t name)
{
	if (begin >= end)
		abort();
}

static void check_names(const struct gopclntab *section)
{
	size_t size;
	const char *names = gopclntab_names(section, &size);

	if (size && memchr(names, 0xff, size) == names + size) /* reads all of it */
		abort();
}

static void check_lines(const struct gopclntab *section)
{
	struct go_line line;

	for (__u64 address = 0x1000; address < 0x1000 + 64 * 16; address += 16)
		if (gopclntab_line(section, address, &line) &&
		    line.file + strlen(line.file) >= (const char *)section->bytes + section->size)
			abort();
}

static void read_table(const unsigned char *bytes, size_t size)
{
	struct gopclntab section = {.size = size - gopclntab_find(bytes, size), .text = 0x1000, .code = code};
	struct unwind_rows rows;

	section.bytes = bytes + size - section.size;
	section.context = &section;
	if (gopclntab_text_at(section.bytes, section.size) > size)
		abort();
	unwind_rows_begin(&rows, 0x1000, 0x180000);
	gopclntab_read(&rows, &section);
	finish_table(&rows, 4 * size + 256);
	gopclntab_functions(&section, check_function, NULL);
	check_names(&section);
	check_lines(&section);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct chosen chosen;
	unsigned char *copy;

	read_table(data, size);
	if (size < CHOICE + HEADER)
		return 0;
	memcpy(&chosen, data, sizeof(chosen));
	size -= CHOICE;
	copy = malloc(size); /* so that ASan sees a read beyond its end */
	if (!copy)
		return 0;
	memcpy(copy, data + CHOICE, size);
	make_header(copy, size, &chosen);
	read_table(copy, size);
	free(copy);
	return 0;
}
