// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the tables by which stacks are walked: an .eh_frame of any bytes makes a table that holds together,
 * of no more rows than its bytes allow.
 */
#include <stdlib.h>
#include <string.h>

#include "unwind/table.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* As unwind.bpf.h reads it: rows of a page in the order of their addresses, the first at its beginning. */
static void check(const struct unwind_table *table, size_t bytes)
{
	if (table->nr_rows > 3 * bytes + 2 || table->nr_rules > 65536)
		abort();
	for (size_t i = 0; i < table->nr_pages; i++) {
		const struct unwind_page *page = &table->pages[i];

		if (!page->nr || page->first > table->nr_rows || page->nr > table->nr_rows - page->first ||
		    table->rows[page->first] & UNWIND_PAGE_MASK)
			abort();
		for (size_t row = page->first; row < page->first + page->nr; row++) {
			if (table->rows[row] >> 16 >= table->nr_rules)
				abort();
			if (row > page->first && (table->rows[row] & UNWIND_PAGE_MASK) <=
							 (table->rows[row - 1] & UNWIND_PAGE_MASK))
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct unwind_section section = {.bytes = data,
					 .size = size,
					 .address = 0x100000,
					 .low = 0x1000,
					 .high = 0x180000,
					 .entry = 0x1100};
	struct unwind_table table;

	/* As in a file: the section is at most as large as its code is far. */
	if (!unwind_table_of_section(&table, &section)) {
		check(&table, size);
		for (__u64 address = 0; address < 0x190000; address += 0x777)
			unwind_table_at(&table, address);
	}
	unwind_table_release(&table);
	return 0;
}
