// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the table of Go's functions: a .gopclntab of any bytes makes a consistent table for unwinding, with
 * no more rows than its size allows. The first bytes of the input choose the format and make the header lead
 * into the section, so that the other bytes reach the parser.
 */
#include <stdlib.h>
#include <string.h>

#include "confined/gopclntab.h"
#include "confined/unwind_rows.h"
#include "unwind/table.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

#define HEADER 72
#define CHOICE 16 /* bytes of the input that are not part of the section */

struct chosen {
	unsigned int format;
	unsigned short nr, names, distances, functions;
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
	put(bytes + first + 24, chosen->distances % size);
	put(bytes + first + 32, chosen->functions % size);
}

/* As unwind.bpf.h expects: the rows of a page ascend, and the first is at the page's start. */
static void check(const struct unwind_table *table, size_t bytes)
{
	if (table->nr_rows > 4 * bytes + 256 || table->nr_rules > 65536)
		abort();
	for (size_t i = 0; i < table->nr_pages; i++) {
		const struct unwind_page *page = &table->pages[i];

		if (!page->nr || page->first > table->nr_rows || page->nr > table->nr_rows - page->first ||
		    table->rows[page->first] & UNWIND_PAGE_MASK)
			abort();
		for (size_t row = page->first + 1; row < page->first + page->nr; row++)
			if ((table->rows[row] & UNWIND_PAGE_MASK) <=
			    (table->rows[row - 1] & UNWIND_PAGE_MASK))
				abort();
	}
}

static void read_table(const unsigned char *bytes, size_t size)
{
	struct gopclntab section = {.size = size - gopclntab_find(bytes, size), .text = 0x1000, .code = code};
	struct unwind_table table = {0};
	struct unwind_rows rows;

	section.bytes = bytes + size - section.size;
	section.context = &section;
	if (gopclntab_text_at(section.bytes, section.size) > size)
		abort();
	unwind_rows_begin(&rows, 0x1000, 0x180000);
	gopclntab_read(&rows, &section);
	if (!unwind_rows_finish(&rows, 0x1100, &table)) {
		check(&table, size);
		for (__u64 address = 0; address < 0x190000; address += 0x777)
			unwind_table_at(&table, address);
	}
	unwind_rows_release(&rows);
	unwind_table_release(&table);
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
