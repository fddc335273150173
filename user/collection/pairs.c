// SPDX-License-Identifier: GPL-2.0-only
#include "collection/pairs.h"

#include <stdlib.h>
#include <string.h>

#define PLACES_LEAST 1024

void pairs_grow(struct pairs *pairs)
{
	struct pairs larger = {.nr = pairs->nr};

	larger.nr_places = pairs->nr_places ? 2 * pairs->nr_places : PLACES_LEAST;
	larger.places = calloc(larger.nr_places, sizeof(*larger.places));
	for (size_t i = 0; i < pairs->nr_places; i++) {
		const struct pair *old = &pairs->places[i];

		if (old->counts[0] | old->counts[1])
			*pairs_place(&larger, old->from, old->to) = *old;
	}
	free(pairs->places);
	*pairs = larger;
}

void pairs_clear(struct pairs *pairs)
{
	if (pairs->nr)
		memset(pairs->places, 0, pairs->nr_places * sizeof(*pairs->places));
	pairs->nr = 0;
}
