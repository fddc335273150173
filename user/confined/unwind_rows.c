// SPDX-License-Identifier: GPL-2.0-only
#include "confined/unwind_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const struct unwind_rule nothing = {.frame = FRAME_NONE};

const char *unwind_rows_begin(struct unwind_rows *rows, __u64 low, __u64 high)
{
	*rows = (struct unwind_rows){.low = low, .high = high};
	if (high <= low || high - (low & ~(__u64)UNWIND_PAGE_MASK) >= 1ULL << 32)
		return "the file's code has no place, or is larger than 4 GiB";
	interned_init(&rows->rules, sizeof(struct unwind_rule));
	return NULL;
}

void unwind_rows_release(struct unwind_rows *rows)
{
	interned_release(&rows->rules);
	free(rows->functions);
	free(rows->rows);
}

/* --- functions and their rows ------------------------------------------------------------------- */

static int by_begin(const void *a, const void *b)
{
	const struct unwind_function *one = a, *two = b;

	if (one->begin != two->begin)
		return one->begin < two->begin ? -1 : 1;
	return one->first < two->first ? -1 : one->first > two->first;
}

static void sort(struct unwind_rows *rows)
{
	if (rows->nr_functions)
		qsort(rows->functions, rows->nr_functions, sizeof(*rows->functions), by_begin);
}

void unwind_rows_next_section(struct unwind_rows *rows)
{
	sort(rows);
	rows->nr_known = rows->nr_functions;
}

/* Whether a former section has a function with this address. */
static bool is_known(const struct unwind_rows *rows, __u32 address)
{
	size_t low = 0, high = rows->nr_known;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (rows->functions[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && rows->functions[low - 1].end > address;
}

bool unwind_rows_function(struct unwind_rows *rows, __u64 begin, __u64 end)
{
	if (begin < rows->low || begin >= rows->high || end <= begin || is_known(rows, begin - rows->low))
		return false;
	if (end > rows->high)
		end = rows->high;
	rows->functions =
		xroom(rows->functions, rows->nr_functions, &rows->room_functions, sizeof(*rows->functions));
	rows->functions[rows->nr_functions++] = (struct unwind_function){
		.begin = begin - rows->low, .end = end - rows->low, .first = rows->nr_rows};
	return true;
}

void unwind_rows_add(struct unwind_rows *rows, __u64 at, const struct unwind_rule *rule)
{
	struct unwind_function *function = &rows->functions[rows->nr_functions - 1];
	__u32 number = interned_number(&rows->rules, rule), address = at - rows->low;
	struct early_row *last = function->nr ? &rows->rows[rows->nr_rows - 1] : NULL;

	if (last && last->rule == number)
		return;
	if (last && last->address == address) {
		last->rule = number;
		return;
	}
	rows->rows = xroom(rows->rows, rows->nr_rows, &rows->room_rows, sizeof(*rows->rows));
	rows->rows[rows->nr_rows++] = (struct early_row){address, number};
	function->nr++;
}

void unwind_rows_cut(struct unwind_rows *rows, __u64 end)
{
	rows->functions[rows->nr_functions - 1].end = end - rows->low;
}

/* --- the table -------------------------------------------------------------------------------- */

/* If no function is known at the program's entry point, as in the dynamic linker, an outermost frame of at
 * most so many bytes is added there. */
#define ENTRY_MOST 256

static void add_entry(struct unwind_rows *rows, __u64 entry)
{
	static const struct unwind_rule end = {.frame = FRAME_END};
	__u64 last = rows->high - entry > ENTRY_MOST ? entry + ENTRY_MOST : rows->high;
	__u32 at = entry - rows->low;

	if (entry < rows->low || entry >= rows->high)
		return;
	for (size_t i = 0; i < rows->nr_functions; i++) {
		const struct unwind_function *function = &rows->functions[i];

		if (function->begin <= at && function->end > at)
			return;
		if (function->begin > at && rows->low + function->begin < last)
			last = rows->low + function->begin;
	}
	unwind_rows_next_section(rows);
	if (unwind_rows_function(rows, entry, last))
		unwind_rows_add(rows, entry, &end);
}

/* Returns all rows in order of their addresses, relative to the table's first page. A function ends where the
 * next one begins. A row for "nothing is known" is added after functions that no other follows directly. */
static struct early_row *in_order(struct unwind_rows *rows, size_t *nr_ordered)
{
	__u32 none = interned_number(&rows->rules, &nothing), rule = none;
	__u32 low = rows->low & UNWIND_PAGE_MASK;
	size_t nr = rows->nr_functions;
	struct early_row *ordered = xmalloc((rows->nr_rows + nr + 1) * sizeof(*ordered));

	*nr_ordered = 0;
	sort(rows);
	for (size_t i = 0; i < nr; i++) {
		const struct unwind_function *function = &rows->functions[i];
		bool followed = i + 1 < nr && function[1].begin <= function->end;
		__u32 end = followed ? function[1].begin : function->end;

		for (size_t j = 0; j < function->nr; j++) {
			const struct early_row *row = &rows->rows[function->first + j];

			if (row->address >= end || row->rule == rule)
				continue;
			rule = row->rule;
			ordered[(*nr_ordered)++] = (struct early_row){row->address + low, rule};
		}
		if (followed || rule == none)
			continue;
		rule = none;
		ordered[(*nr_ordered)++] = (struct early_row){end + low, rule};
	}
	return ordered;
}

struct maker {
	struct unwind_table *table;
	size_t room;
};

static void put_row(struct maker *maker, __u32 address, __u32 rule)
{
	struct unwind_table *table = maker->table;

	table->rows = xroom(table->rows, table->nr_rows, &maker->room, sizeof(*table->rows));
	table->rows[table->nr_rows++] = rule << 16 | (address & UNWIND_PAGE_MASK);
}

/* Fills in the pages and their rows. Consecutive pages in which no row begins share one row. */
static void make_pages(struct maker *maker, const struct early_row *rows, size_t nr_rows, __u32 rule)
{
	struct unwind_table *table = maker->table;
	bool shared = false;

	for (size_t page = 0, i = 0; page < table->nr_pages; page++) {
		struct unwind_page *here = &table->pages[page];
		bool any = i < nr_rows && rows[i].address >> UNWIND_PAGE_SHIFT == page;

		if (!any && shared) {
			*here = table->pages[page - 1];
			continue;
		}
		shared = !any;
		here->first = table->nr_rows;
		if (!any || rows[i].address & UNWIND_PAGE_MASK)
			put_row(maker, 0, rule);
		for (; i < nr_rows && rows[i].address >> UNWIND_PAGE_SHIFT == page; i++)
			put_row(maker, rows[i].address, rule = rows[i].rule);
		here->nr = table->nr_rows - here->first;
	}
}

static void make(struct unwind_rows *rows, struct unwind_table *table)
{
	struct maker maker = {.table = table};
	struct early_row *ordered;
	size_t nr;

	ordered = in_order(rows, &nr);
	table->base = rows->low & ~(__u64)UNWIND_PAGE_MASK;
	table->nr_pages = ((rows->high - 1 - table->base) >> UNWIND_PAGE_SHIFT) + 1;
	table->pages = xcalloc(table->nr_pages, sizeof(*table->pages));
	make_pages(&maker, ordered, nr, interned_number(&rows->rules, &nothing));
	free(ordered);
	table->nr_rules = rows->rules.nr;
	table->rules = xmalloc(table->nr_rules * sizeof(*table->rules));
	for (size_t i = 0; i < table->nr_rules; i++)
		memcpy(&table->rules[i], interned_at(&rows->rules, i), sizeof(*table->rules));
}

#define RULES_MOST 65536

const char *unwind_rows_finish(struct unwind_rows *rows, __u64 entry, struct unwind_table *table)
{
	*table = (struct unwind_table){0};
	if (!rows->nr_functions)
		return "the file does not say of any function how its frame is left";
	if (rows->rules.nr >= RULES_MOST - 2)
		return "the file's functions have more than 65,536 kinds of frames";
	add_entry(rows, entry);
	make(rows, table);
	return NULL;
}
