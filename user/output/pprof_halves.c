// SPDX-License-Identifier: GPL-2.0-only
/* Profiles of pprof, halved by their samples. */
#include <stdlib.h>

#include "base/array.h"
#include "base/memory.h"
#include "output/gzip.h"
#include "output/halves.h"
#include "output/protobuf_tables.h"
#include "pprof.pb-c.h"

enum { TEXTS, MAPPINGS, LOCATIONS, FUNCTIONS };

static const struct protobuf_table tables[] = {
	[TEXTS] = {"string_table", .first = true},
	[MAPPINGS] = {"mapping", .ids = true, .first = true}, /* the first is the program */
	[LOCATIONS] = {"location", .ids = true},
	[FUNCTIONS] = {"function", .ids = true},
};

static const struct protobuf_name names[] = {
	{&pprof__profile__descriptor, "comment", TEXTS},
	{&pprof__value_type__descriptor, "type", TEXTS},
	{&pprof__value_type__descriptor, "unit", TEXTS},
	{&pprof__sample__descriptor, "location_id", LOCATIONS},
	{&pprof__label__descriptor, "key", TEXTS},
	{&pprof__label__descriptor, "str", TEXTS},
	{&pprof__mapping__descriptor, "filename", TEXTS},
	{&pprof__mapping__descriptor, "build_id", TEXTS},
	{&pprof__location__descriptor, "mapping_id", MAPPINGS},
	{&pprof__line__descriptor, "function_id", FUNCTIONS},
	{&pprof__function__descriptor, "name", TEXTS},
	{&pprof__function__descriptor, "system_name", TEXTS},
	{&pprof__function__descriptor, "filename", TEXTS},
};

static const struct protobuf_form form = {tables, ARRAY_SIZE(tables), names, ARRAY_SIZE(names)};

/* Leaves the samples from `first` up to `end`. */
static void keep_samples(Pprof__Profile *profile, size_t first, size_t end)
{
	size_t nr = 0;

	for (size_t i = 0; i < profile->n_sample; i++) {
		if (i >= first && i < end)
			profile->sample[nr++] = profile->sample[i];
		else
			pprof__sample__free_unpacked(profile->sample[i], NULL);
	}
	profile->n_sample = nr;
}

static struct half pack_profile(const Pprof__Profile *profile)
{
	size_t size = pprof__profile__get_packed_size(profile);
	unsigned char *bytes = xmalloc(size);
	struct half half;

	pprof__profile__pack(profile, bytes);
	half.bytes = gzip(bytes, size, &half.size);
	free(bytes);
	return half;
}

/* Makes a half of the profile, or nothing. Returns the number of the profile's samples. */
static size_t make_half(const char *bytes, size_t size, int which, struct half *half)
{
	Pprof__Profile *profile = pprof__profile__unpack(NULL, size, (const uint8_t *)bytes);
	size_t nr = profile ? profile->n_sample : 0, bounds[] = {0, nr / 2, nr};

	if (nr > 1) {
		keep_samples(profile, bounds[which], bounds[which + 1]);
		if (!protobuf_prune(&profile->base, &profile->base, &form))
			nr = 0;
	}
	if (nr > 1)
		*half = pack_profile(profile);
	pprof__profile__free_unpacked(profile, NULL);
	return nr;
}

bool pprof_halve(const char *bytes, size_t size, struct half halves[2])
{
	size_t unzipped_size;
	char *unzipped = gunzip(bytes, size, &unzipped_size);
	int nr = 0;

	while (unzipped && nr < 2 && make_half(unzipped, unzipped_size, nr, &halves[nr]) > 1)
		nr++;
	free(unzipped);
	if (nr == 1)
		free(halves[0].bytes);
	return nr == 2;
}
