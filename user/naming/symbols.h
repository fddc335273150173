/* SPDX-License-Identifier: GPL-2.0-only */
/* Function symbols, by address. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "base/memory.h"
#include "naming/spans.h"

/* A symbol as it was read. */
struct found_symbol {
	__u64 address; /* the sort key, so it must be the first member */
	__u64 end;     /* first address after it; equal to `address` if not known */
	__u32 name;    /* offset in `strings` */
	/* If two overlap, the higher order applies; if equal, the one that begins later. It is the line of a
	 * map, which may be of 64 MiB by default, or the record of a dump of 4 GiB, of at least 16 bytes. */
	__u32 order : 28;
	__u32 weak : 1, local : 1, label : 1;
	__u32 indirect : 1; /* the code chooses a function when the file is loaded */
};

struct symbol {
	__u64 address;
	__u32 name; /* offset in `strings` */
} __attribute__((packed));

/* Why code that was made at run time has no names, if it has more of them than fit. */
#define JIT_NO_ROOM "the names of compiled code do not fit into the limit of memory"

struct symbols {
	struct spans spans; /* `what` is an index of `list` */
	struct symbol *list;
	size_t nr;
	char *strings;
	size_t strings_size;
	size_t strings_room;

	void *mapped; /* mapping that holds all lists, if they are not on the heap */
	size_t mapped_size;

	struct found_symbol *found; /* only until symbols_finish() */
	size_t nr_found, room;
};

/* Functions by their ranges alone, in the order of their addresses. They do not overlap. */
struct nameless {
	struct nameless_function {
		__u64 begin;
		__u32 size;
	} __attribute__((packed)) * list; /* a stripped library has 100,000 */
	size_t nr;
};

/* How many begin at the address or before it. */
size_t nameless_begun(const struct nameless *nameless, __u64 address);
/* Finds the one that contains an address; NULL if there is none. */
const struct nameless_function *nameless_find(const struct nameless *nameless, __u64 address);

/* Appends strings and a zero byte. Returns where they begin, or -1 if they would exceed 4 GiB in all. */
long long symbols_add_strings(struct symbols *symbols, const char *strings, size_t size);

/* The same for strings that are written to their place: first room for them, NULL if they would exceed 4 GiB;
 * then they are taken as they are there. Nothing may be added between the two. */
char *symbols_room(struct symbols *symbols, size_t size);
long long symbols_take_room(struct symbols *symbols, size_t size);

/* Makes room for about so many more symbols, so that they are not moved while they are added. */
void symbols_expect(struct symbols *symbols, size_t nr);

/* Adds a symbol. Its name must already be in the strings. */
static inline void symbols_add(struct symbols *symbols, const struct found_symbol *symbol)
{
	if (symbols->nr_found == symbols->room)
		symbols->found =
			xroom(symbols->found, symbols->nr_found, &symbols->room, sizeof(*symbols->found));
	symbols->found[symbols->nr_found++] = *symbol;
}

/* Which of two symbols at one address, with their names, to show: negative for the first. As in perf, a
 * symbol is preferred that has a size, is not weak, is global, begins with fewer underscores, or is longer,
 * in this order.
 */
int symbols_better(const struct found_symbol *a, const char *x, const struct found_symbol *b, const char *y);

/* The name of the function that the code at an address chooses, else the best known of all that were added at
 * it; NULL: there is none. It walks through all symbols. The name is valid until more strings are added. */
const char *symbols_chosen_by(const struct symbols *symbols, __u64 address);

/*
 * Must be called once, after all symbols were added. Of several symbols at one address, the one that people
 * know best is kept. A symbol without a known end extends to the next one, but not beyond the code that
 * contains it: end_of() returns the end of that code; NULL: the symbol extends for at most a page.
 */
void symbols_finish(struct symbols *symbols,
		    __u64 (*end_of)(const void *of, const struct found_symbol *symbol), const void *of);

/* How many begin at the address or before it, of those that were kept. */
size_t symbols_begun(const struct symbols *symbols, __u64 address);
/* Finds the symbol that contains an address; NULL if there is none. */
const struct symbol *symbols_find(const struct symbols *symbols, __u64 address);

static inline const char *symbol_name(const struct symbols *symbols, const struct symbol *symbol)
{
	return symbols->strings + symbol->name;
}

void symbols_release(struct symbols *symbols);
size_t symbols_bytes(const struct symbols *symbols);
