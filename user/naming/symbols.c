// SPDX-License-Identifier: GPL-2.0-only
#include "naming/symbols.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "naming/order.h"

char *symbols_room(struct symbols *symbols, size_t size)
{
	size_t at = symbols->strings_size;

	if (size >= (1ULL << 32) - 1 - at)
		return NULL;
	symbols->strings = xfit(symbols->strings, at + size + 1, &symbols->strings_room, 1);
	return symbols->strings + at;
}

long long symbols_take_room(struct symbols *symbols, size_t size)
{
	size_t at = symbols->strings_size;

	symbols->strings[at + size] = '\0';
	symbols->strings_size = at + size + 1;
	return at;
}

long long symbols_add_strings(struct symbols *symbols, const char *strings, size_t size)
{
	char *room = symbols_room(symbols, size);

	if (!room)
		return -1;
	memcpy(room, strings, size);
	return symbols_take_room(symbols, size);
}

void symbols_expect(struct symbols *symbols, size_t nr)
{
	if (symbols->room - symbols->nr_found >= nr)
		return;
	symbols->room = symbols->nr_found + nr;
	symbols->found = xrealloc(symbols->found, symbols->room * sizeof(*symbols->found));
}

int symbols_better(const struct found_symbol *a, const char *x, const struct found_symbol *b, const char *y)
{
	size_t under_x, under_y, long_x, long_y;

	if (a->order != b->order)
		return a->order > b->order ? -1 : 1;
	if ((a->end == a->address) != (b->end == b->address))
		return a->end == a->address ? 1 : -1;
	if (a->weak != b->weak)
		return a->weak - b->weak;
	if (a->local != b->local)
		return a->local - b->local;
	under_x = strspn(x, "_");
	under_y = strspn(y, "_");
	if (under_x != under_y)
		return under_x < under_y ? -1 : 1;
	long_x = strlen(x);
	long_y = strlen(y);
	if (long_x != long_y)
		return long_x > long_y ? -1 : 1;
	return strcmp(x, y);
}

static int better(const struct found_symbol *a, const struct found_symbol *b, const char *strings)
{
	return symbols_better(a, strings + a->name, b, strings + b->name);
}

static bool rather(const struct found_symbol *a, const struct found_symbol *b, const char *strings)
{
	return a->indirect != b->indirect ? a->indirect : better(a, b, strings) < 0;
}

const char *symbols_chosen_by(const struct symbols *symbols, __u64 address)
{
	const struct found_symbol *best = NULL, *end = symbols->found + symbols->nr_found;

	for (const struct found_symbol *at = symbols->found; at < end; at++)
		if (at->address == address && (!best || rather(at, best, symbols->strings)))
			best = at;
	return best ? symbols->strings + best->name : NULL;
}

/* Whether the symbol is only a label within a function, as in assembly. The function's name is used then. */
static bool inside(const struct found_symbol *symbol, __u64 reach)
{
	return symbol->label && symbol->end == symbol->address && symbol->address < reach;
}

/* The best known of the symbols at one address, which are adjacent. */
static const struct found_symbol *best_of(const struct symbols *symbols, const struct found_symbol *first,
					  const struct found_symbol *end)
{
	const struct found_symbol *best = first;

	while (++first < end)
		if (better(first, best, symbols->strings) < 0)
			best = first;
	return best;
}

#define PAGE	4096
#define FOREVER (~0ULL)

/* The end of the code that contains an address. */
struct code_end {
	__u64 (*end_of)(const void *of, const struct found_symbol *symbol);
	const void *of;
};

/* Ends a symbol whose end is not known. `next`: where the next one begins. */
static void end_symbol(const struct code_end *code, struct found_symbol *symbol, __u64 next)
{
	__u64 limit;

	if (symbol->end != symbol->address)
		return;
	limit = code->end_of ? code->end_of(code->of, symbol) : symbol->address + PAGE;
	symbol->end = next < limit ? next : limit;
}

static void keep_one_each(struct symbols *symbols, const struct code_end *code)
{
	struct found_symbol *const first = symbols->found, *const end = first + symbols->nr_found,
				   *kept = first;
	__u64 reach = 0;

	for (const struct found_symbol *symbol = first, *next; symbol < end; symbol = next) {
		next = symbol + 1;
		if (next < end && next->address == symbol->address) {
			while (next < end && next->address == symbol->address)
				next++;
			symbol = best_of(symbols, symbol, next);
		}
		if (inside(symbol, reach))
			continue;
		if (symbol->end > reach)
			reach = symbol->end;
		if (kept > first)
			end_symbol(code, kept - 1, symbol->address);
		*kept++ = *symbol;
	}
	if (kept > first)
		end_symbol(code, kept - 1, FOREVER);
	symbols->nr = kept - first;
}

static struct span span_at(const void *of, size_t i)
{
	const struct found_symbol *symbol = (const struct found_symbol *)of + i;

	return (struct span){symbol->address, symbol->end, symbol->order, i};
}

void symbols_finish(struct symbols *symbols,
		    __u64 (*end_of)(const void *of, const struct found_symbol *symbol), const void *of)
{
	order_by_address(symbols->found, symbols->nr_found, sizeof(*symbols->found));
	if (symbols->nr_found) /* else there is no list */
		keep_one_each(symbols, &(struct code_end){end_of, of});
	spans_of_ordered(&symbols->spans, symbols->nr, span_at, symbols->found);
	symbols->list = xmalloc((symbols->nr + 1) * sizeof(*symbols->list));
	for (size_t i = 0; i < symbols->nr; i++)
		symbols->list[i] = (struct symbol){symbols->found[i].address, symbols->found[i].name};
	free(symbols->found);
	symbols->found = NULL;
	if (symbols->strings)
		symbols->strings = xrealloc(symbols->strings, symbols->strings_size);
	symbols->strings_room = symbols->strings_size;
}

size_t symbols_begun(const struct symbols *symbols, __u64 address)
{
	size_t low = 0, high = symbols->nr;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (symbols->list[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct symbol *symbols_find(const struct symbols *symbols, __u64 address)
{
	__u32 found = spans_find(&symbols->spans, address);

	return found == SPANS_NONE ? NULL : &symbols->list[found];
}

size_t nameless_begun(const struct nameless *nameless, __u64 address)
{
	size_t low = 0, high = nameless->nr;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (nameless->list[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct nameless_function *nameless_find(const struct nameless *nameless, __u64 address)
{
	size_t begun = nameless_begun(nameless, address);
	const struct nameless_function *last = begun ? &nameless->list[begun - 1] : NULL;

	return last && address - last->begin < last->size ? last : NULL;
}

void symbols_release(struct symbols *symbols)
{
	if (symbols->mapped) {
		munmap(symbols->mapped, symbols->mapped_size);
		*symbols = (struct symbols){0};
		return;
	}
	spans_release(&symbols->spans);
	free(symbols->list);
	free(symbols->strings);
	free(symbols->found);
	*symbols = (struct symbols){0};
}

size_t symbols_bytes(const struct symbols *symbols)
{
	return spans_bytes(&symbols->spans) + symbols->nr * sizeof(*symbols->list) + symbols->strings_size;
}
