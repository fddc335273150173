// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the naming of code in ELF files. The input is read from memory, because creating a file
 * would be most of the cost; a file is created only if the input refers to another file. Whatever
 * the bytes: no crash, no leak, no endless search, and names within their bounds.
 */
#include <stdlib.h>
#include <string.h>

#include "itself.h"
#include "sections.h"
#include "naming/demangle.h"
#include "naming/message.h"
#include "naming/naming.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t most, unsigned int seed);

/* Names an address as served.c and named_source.c do. */
static void check(struct read_file *file, __u64 address)
{
	const struct symbol *symbol = symbols_find(&file->symbols, address);
	struct source_place places[FRAMES_MAX] = {0};
	char text[NAMING_SYMBOL_MAX + 1];
	size_t nr = file->lines ? lines_find(file->lines, address, places, FRAMES_MAX) : 0;

	if (nr > FRAMES_MAX)
		abort();
	for (size_t i = 0; i < nr; i++)
		if ((places[i].function &&
		     demangle(places[i].function, text, sizeof(text)) > NAMING_SYMBOL_MAX) ||
		    (places[i].file && !places[i].file[0] && places[i].line > 1 << 30))
			abort();
	if (symbol && demangle(symbol_name(&file->symbols, symbol), text, sizeof(text)) > NAMING_SYMBOL_MAX)
		abort();
}

#define PLACES	 16 /* per segment */
#define SEGMENTS 4

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct read_file file;

	if (!begin_itself(&file, data, size))
		return 0;
	for (size_t i = 0; i < file.nr_segments && i < SEGMENTS; i++)
		for (size_t at = 0; at < PLACES; at++)
			check(&file, file.segments[i].address + file.segments[i].size / PLACES * at);
	if (symbols_bytes(&file.symbols) + (file.lines ? lines_bytes(file.lines) : 0) > MEMORY)
		abort();
	end_itself(&file);
	return 0;
}

size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t most, unsigned int seed)
{
	return mutate_section(data, size, most, seed);
}
