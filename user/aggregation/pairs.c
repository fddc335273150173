// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/interned.h"
#include "base/memory.h"

#define SLOTS_LEAST 1024

void pairs_grow(struct pairs *pairs)
{
	struct pairs larger = {.nr = pairs->nr};

	larger.nr_slots = pairs->nr_slots ? 2 * pairs->nr_slots : SLOTS_LEAST;
	larger.slots = xcalloc(larger.nr_slots, sizeof(*larger.slots));
	for (size_t i = 0; i < pairs->nr_slots; i++) {
		const struct pair *old = &pairs->slots[i];

		if (old->counts[0] | old->counts[1])
			*pairs_slot(&larger, old->from, old->to) = *old;
	}
	free(pairs->slots);
	*pairs = larger;
}

void pairs_clear(struct pairs *pairs)
{
	if (interned_is_sparse(pairs->nr, pairs->nr_slots)) {
		free(pairs->slots);
		*pairs = (struct pairs){0};
	} else if (pairs->nr) {
		memset(pairs->slots, 0, pairs->nr_slots * sizeof(*pairs->slots));
	}
	pairs->nr = 0;
}
