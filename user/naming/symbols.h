/* SPDX-License-Identifier: GPL-2.0-only */
/* Symbols of code, by address. */
#ifndef NHMTAP_SYMBOLS_H
#define NHMTAP_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "naming/spans.h"

/* A symbol as it is found. */
struct found_symbol {
	__u64 address; /* what they are sorted by, and the first member */
	__u64 end;     /* the first address after it; the address itself: not known */
	__u32 name;    /* where it is in the strings */
	__u32 order;   /* of two that overlap the higher one is taken, of equals the one that begins later */
	bool weak, local, label;
};

struct symbol {
	__u64 address;
	__u32 name; /* where it is in the strings */
};

struct symbols {
	struct spans spans; /* to numbers of the list */
	struct symbol *list;
	size_t nr;
	char *strings;
	size_t strings_size;
	size_t strings_room;

	void *mapped; /* where the lists are, if not in memory of their own */
	size_t mapped_size;

	struct found_symbol *found; /* up to symbols_finish() */
	size_t nr_found, room;
};

/* Appends strings; a zero byte is put behind them. Returns where they begin, -1 if they would be too
 * many (4 GiB). */
long long symbols_add_strings(struct symbols *symbols, const char *strings, size_t size);

/* The name must be in the strings. */
void symbols_add(struct symbols *symbols, const struct found_symbol *symbol);

/*
 * To be called once, when all are there. Of those at one address the best known name is left. One
 * whose end is not known reaches up to the next, and not beyond the code that it is in: end_of() says
 * where that ends; NULL: a page.
 */
void symbols_finish(struct symbols *symbols, __u64 (*end_of)(const void *of, __u64 address), const void *of);

/* The symbol that an address is in, NULL if there is none. */
const struct symbol *symbols_find(const struct symbols *symbols, __u64 address);

static inline const char *symbol_name(const struct symbols *symbols, const struct symbol *symbol)
{
	return symbols->strings + symbol->name;
}

void symbols_release(struct symbols *symbols);
size_t symbols_bytes(const struct symbols *symbols);

#endif
