/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Code that the kernel makes while nhmtap runs, by the kernel's notes: BPF programs, trampolines. Such code
 * comes and goes, and its addresses are used again, so each piece has a lifetime. /proc/kallsyms, which is
 * read once, has what was there before.
 */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

#include "collection/sideband.h"

/* A piece of code, and the time for which it exists. */
struct ksymbol {
	__u64 begin, end;   /* its first address, and the one after its last */
	__u64 since, until; /* CLOCK_MONOTONIC, ns; 0: before the first note */
	const char *name;
	const char *module; /* "[bpf]" or "[kernel]", as in /proc/kallsyms */
};

#define KSYMBOLS_MOST (1 << 14) /* beyond that, code that has gone is forgotten first */

struct ksymbols {
	struct ksymbol *list; /* the names are its own */
	size_t nr, room;
	bool replaced; /* see ksymbols_replaced() */
	__u64 changes; /* notes so far */
	/* Reads the notes that have come since the last time; NULL: nobody does. */
	void (*read)(void *context);
	void *context; /* of read */
};

/* Adds a note of kind SIDEBAND_KSYMBOL. */
void ksymbols_take(struct ksymbols *ksymbols, const struct sideband_note *note);

/* Whether code came to addresses where other code was, since the last call. */
bool ksymbols_replaced(struct ksymbols *ksymbols);

/* Finds the code that was at an address longest since `since`, and whether other code was there as well. NULL
 * if no note told of any. The result is valid until the next call of another function. */
const struct ksymbol *ksymbols_find(const struct ksymbols *ksymbols, __u64 address, __u64 since,
				    bool *ambiguous);

/* Forgets code that was gone before `since`. */
void ksymbols_forget(struct ksymbols *ksymbols, __u64 since);
void ksymbols_release(struct ksymbols *ksymbols);
