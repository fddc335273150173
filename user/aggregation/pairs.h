/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts of pairs of addresses. A branch trace has tens of millions of branches a second, but few different
 * ones. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct pair {
	__u64 from, to;
	__u64 counts[2]; /* both zero: the slot is free */
};

/* Initialized with {0}; the caller frees slots. */
struct pairs {
	struct pair *slots; /* open addressing */
	size_t nr_slots;    /* a power of two */
	size_t nr;
};

/* Makes room for one more pair. */
void pairs_grow(struct pairs *pairs);

/* Forgets all pairs. */
void pairs_clear(struct pairs *pairs);

static inline struct pair *pairs_slot(const struct pairs *pairs, __u64 from, __u64 to)
{
	__u64 hash = (from ^ (to << 32 | to >> 32)) * 0x9e3779b97f4a7c15ULL;
	size_t at = hash >> 32;

	for (;; at++) {
		struct pair *slot = &pairs->slots[at & (pairs->nr_slots - 1)];

		if ((slot->from == from && slot->to == to) || !(slot->counts[0] | slot->counts[1]))
			return slot;
	}
}

/* Counts a pair once, in its first or second count. */
static inline void pairs_add(struct pairs *pairs, __u64 from, __u64 to, bool second)
{
	struct pair *slot;

	if (2 * pairs->nr >= pairs->nr_slots)
		pairs_grow(pairs);
	slot = pairs_slot(pairs, from, to);
	if (!(slot->counts[0] | slot->counts[1])) {
		slot->from = from;
		slot->to = to;
		pairs->nr++;
	}
	slot->counts[second]++;
}
