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

static void sort_functions(struct unwind_rows *rows)
{
	if (rows->nr_functions)
		qsort(rows->functions, rows->nr_functions, sizeof(*rows->functions), by_begin);
}

void unwind_rows_next_section(struct unwind_rows *rows)
{
	sort_functions(rows);
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

/* Goes through all rows in order of their addresses, relative to the table's first page: a list of them would
 * take as much memory again. A function ends where the next one begins. After functions that no other follows
 * directly there is a row for "nothing is known". */
struct in_order {
	const struct unwind_rows *rows;
	size_t function, row;  /* where it is */
	__u32 none, rule;      /* the rules of "nothing is known", and of the last row */
	bool any;	       /* there is a next row … */
	struct early_row next; /* … this one */
};

/* Finds the next row of the function that it is at. Returns whether there is one. */
static bool next_of_function(struct in_order *order)
{
	const struct unwind_rows *rows = order->rows;
	const struct unwind_function *function = &rows->functions[order->function];
	bool followed = order->function + 1 < rows->nr_functions && function[1].begin <= function->end;
	__u32 end = followed ? function[1].begin : function->end, low = rows->low & UNWIND_PAGE_MASK;

	while (order->row < function->nr) {
		const struct early_row *row = &rows->rows[function->first + order->row++];

		if (row->address >= end || row->rule == order->rule)
			continue;
		order->next = (struct early_row){row->address + low, row->rule};
		return true;
	}
	if (followed || order->rule == order->none)
		return false;
	order->next = (struct early_row){end + low, order->none};
	return true;
}

static void go_on(struct in_order *order)
{
	order->any = false;
	while (!order->any && order->function < order->rows->nr_functions) {
		order->any = next_of_function(order);
		if (order->any) {
			order->rule = order->next.rule;
		} else {
			order->function++;
			order->row = 0;
		}
	}
}

static struct in_order begin_in_order(struct unwind_rows *rows)
{
	__u32 none = interned_number(&rows->rules, &nothing);
	struct in_order order = {.rows = rows, .none = none, .rule = none};

	sort_functions(rows);
	go_on(&order);
	return order;
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

static bool is_in_page(const struct in_order *rows, size_t page)
{
	return rows->any && rows->next.address >> UNWIND_PAGE_SHIFT == page;
}

/* Fills in the pages and their rows. Consecutive pages in which no row begins share one row. */
static void make_pages(struct maker *maker, struct in_order *rows)
{
	struct unwind_table *table = maker->table;
	__u32 rule = rows->none;
	bool shared = false;

	for (size_t page = 0; page < table->nr_pages; page++) {
		struct unwind_page *here = &table->pages[page];
		bool any = is_in_page(rows, page);

		if (!any && shared) {
			*here = table->pages[page - 1];
			continue;
		}
		shared = !any;
		here->first = table->nr_rows;
		if (!any || rows->next.address & UNWIND_PAGE_MASK)
			put_row(maker, 0, rule);
		for (; is_in_page(rows, page); go_on(rows))
			put_row(maker, rows->next.address, rule = rows->next.rule);
		here->nr = table->nr_rows - here->first;
	}
}

static void make_unwind_table(struct unwind_rows *rows, struct unwind_table *table)
{
	struct maker maker = {.table = table};
	struct in_order ordered = begin_in_order(rows);

	table->base = rows->low & ~(__u64)UNWIND_PAGE_MASK;
	table->nr_pages = ((rows->high - 1 - table->base) >> UNWIND_PAGE_SHIFT) + 1;
	table->pages = xcalloc(table->nr_pages, sizeof(*table->pages));
	make_pages(&maker, &ordered);
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
	make_unwind_table(rows, table);
	return NULL;
}
