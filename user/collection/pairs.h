/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts of pairs of addresses: a trace has tens of millions of branches a second, and few different
 * ones. */
#ifndef NHMTAP_PAIRS_H
#define NHMTAP_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct pair {
	__u64 from, to;
	__u64 counts[2]; /* both zero: a free place */
};

/* Starts as {0}; the caller frees places. */
struct pairs {
	struct pair *places; /* open addressing */
	size_t nr_places;       /* a power of two */
	size_t nr;
};

/* Makes room for one pair more. */
void pairs_grow(struct pairs *pairs);

/* Forgets all pairs. */
void pairs_clear(struct pairs *pairs);

static inline struct pair *pairs_place(const struct pairs *pairs, __u64 from, __u64 to)
{
	__u64 hash = (from ^ (to << 32 | to >> 32)) * 0x9e3779b97f4a7c15ULL;
	size_t at = hash >> 32;

	for (;; at++) {
		struct pair *place = &pairs->places[at & (pairs->nr_places - 1)];

		if ((place->from == from && place->to == to) || !(place->counts[0] | place->counts[1]))
			return place;
	}
}

/* Counts a pair once, in its first or second count. */
static inline void pairs_add(struct pairs *pairs, __u64 from, __u64 to, bool second)
{
	struct pair *place;

	if (2 * pairs->nr >= pairs->nr_places)
		pairs_grow(pairs);
	place = pairs_place(pairs, from, to);
	if (!(place->counts[0] | place->counts[1])) {
		place->from = from;
		place->to = to;
		pairs->nr++;
	}
	place->counts[second]++;
}

#endif
