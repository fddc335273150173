// SPDX-License-Identifier: GPL-2.0-only
#include "unwind/table.h"

#include <stdlib.h>

static const struct unwind_rule nothing = {.frame = FRAME_NONE};

bool unwind_table_of_memory(struct unwind_table *table, __u64 base, const __u64 counts[3], void *memory,
			    size_t size)
{
	size_t nr_pages = counts[0], nr_rules = counts[1], nr_rows = counts[2];

	if (nr_pages > size / sizeof(*table->pages) || nr_rules > size / sizeof(*table->rules) ||
	    nr_rows > size / sizeof(*table->rows) ||
	    nr_pages * sizeof(*table->pages) + nr_rules * sizeof(*table->rules) +
			    nr_rows * sizeof(*table->rows) >
		    size)
		return false;
	*table = (struct unwind_table){.base = base, .pages = memory, .nr_pages = nr_pages};
	table->rules = (struct unwind_rule *)(table->pages + nr_pages);
	table->nr_rules = nr_rules;
	table->rows = (__u32 *)(table->rules + nr_rules);
	table->nr_rows = nr_rows;
	for (size_t i = 0; i < nr_pages; i++)
		if (!table->pages[i].nr || table->pages[i].first > nr_rows ||
		    table->pages[i].nr > nr_rows - table->pages[i].first ||
		    table->pages[i].nr > 1 << UNWIND_PAGE_SHIFT ||
		    (i && table->pages[i].first < table->pages[i - 1].first))
			return false;
	for (size_t i = 0; i < nr_rows; i++)
		if (table->rows[i] >> 16 >= nr_rules)
			return false;
	return nr_pages && nr_rules;
}

void unwind_table_release(struct unwind_table *table)
{
	free(table->pages);
	free(table->rows);
	free(table->rules);
	*table = (struct unwind_table){0};
}

struct unwind_rule unwind_table_at(const struct unwind_table *table, __u64 address)
{
	__u64 number = (address - table->base) >> UNWIND_PAGE_SHIFT;
	const __u32 *rows;
	__u32 low = 0, high;

	if (address < table->base || number >= table->nr_pages)
		return nothing;
	rows = table->rows + table->pages[number].first;
	high = table->pages[number].nr;
	while (high - low > 1) {
		__u32 middle = (low + high) / 2;

		if ((rows[middle] & UNWIND_PAGE_MASK) <= (address & UNWIND_PAGE_MASK))
			low = middle;
		else
			high = middle;
	}
	return table->rules[rows[low] >> 16];
}
