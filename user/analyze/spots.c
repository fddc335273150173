// SPDX-License-Identifier: GPL-2.0-only
#include "analyze/spots.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "record/record.h"

void spots_begin(struct spots *spots)
{
	*spots = (struct spots){.sums = json_object()};
}

static double share_of_place(const json_t *place)
{
	return json_number_value(json_object_get(place, "share"));
}

void spots_add(struct spots *spots, json_t *place, double weight)
{
	char *text = json_dumps(place, JSON_COMPACT | JSON_SORT_KEYS);
	json_t *known = text ? json_object_get(spots->sums, text) : NULL;

	spots->all += weight;
	if (text && !known && weight > 0) {
		known = place;
		json_object_set(spots->sums, text, known);
	}
	if (known)
		json_object_set_new(known, "share", json_real(share_of_place(known) + weight));
	json_decref(place);
	free(text);
}

static int by_share(const void *a, const void *b)
{
	double x = share_of_place(*(json_t *const *)a), y = share_of_place(*(json_t *const *)b);

	return x < y ? 1 : x > y ? -1 : 0;
}

json_t *spots_end(struct spots *spots, size_t most)
{
	size_t nr = 0, size = json_object_size(spots->sums);
	json_t **sorted = xcalloc(size + 1, sizeof(*sorted)), *list = size ? json_array() : NULL, *place;
	const char *text;

	json_object_foreach(spots->sums, text, place)
		sorted[nr++] = place;
	qsort(sorted, nr, sizeof(*sorted), by_share);
	for (size_t i = 0; i < nr && i < most; i++) {
		json_object_set_new(sorted[i], "share", value_real(share_of_place(sorted[i]) / spots->all));
		json_array_append(list, sorted[i]);
	}
	free(sorted);
	json_decref(spots->sums);
	return list;
}

static bool is_divided(__u64 number)
{
	for (__u64 by = 3; by * by <= number; by += 2)
		if (!(number % by))
			return true;
	return false;
}

__u64 period_for(const struct host *host, double occurrences, double wanted)
{
	__u64 period = occurrences / wanted, least = 1;

	if (host->events && host->events->kernel && host->events->kernel->lowest_period)
		least = host->events->kernel->lowest_period;
	if (period <= least || period < 3)
		return least;
	for (period |= 1; is_divided(period);)
		period += 2;
	return period;
}
