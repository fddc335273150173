/* SPDX-License-Identifier: GPL-2.0-only */
/* What fuzz targets check of a table for unwinding, whatever it was made from. */
#pragma once

#include <stdlib.h>

#include "confined/unwind_rows.h"
#include "unwind/table.h"

/* As unwind.bpf.h expects: the rows of a page ascend, and the first is at the page's start. */
static void check_table(const struct unwind_table *table, size_t most_rows)
{
	if (table->nr_rows > most_rows || table->nr_rules > 65536)
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

/* Makes the table of the rows, checks it, and looks addresses up in it. Releases both. */
static void finish_table(struct unwind_rows *rows, size_t most_rows)
{
	struct unwind_table table = {0};

	if (!unwind_rows_finish(rows, 0x1100, &table)) {
		check_table(&table, most_rows);
		for (__u64 address = 0; address < 0x190000; address += 0x777)
			unwind_table_at(&table, address);
	}
	unwind_rows_release(rows);
	unwind_table_release(&table);
}
