// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the tables for unwinding stacks: an .eh_frame or .debug_frame of any bytes makes a consistent table,
 * with no more rows than its size allows.
 */
#include <stdlib.h>
#include <string.h>

#include "confined/eh_frame.h"
#include "confined/unwind_rows.h"
#include "unwind/table.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* As unwind.bpf.h expects: the rows of a page ascend, and the first is at the page's start. */
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
	struct frame_section section = {.bytes = data, .size = size, .address = 0x100000};
	struct unwind_table table = {0};
	struct unwind_rows rows;

	for (int debug = 0; debug < 2; debug++) {
		section.debug = debug;
		unwind_rows_begin(&rows, 0x1000, 0x180000);
		eh_frame_read(&rows, &section);
		if (!unwind_rows_finish(&rows, 0x1100, &table)) {
			check(&table, size);
			for (__u64 address = 0; address < 0x190000; address += 0x777)
				unwind_table_at(&table, address);
		}
		unwind_rows_release(&rows);
		unwind_table_release(&table);
	}
	return 0;
}
