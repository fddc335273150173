// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages of OpenTelemetry's profiles, halved by their samples. A profile that has samples in both halves is
 * a profile of each, with an id of its own; the account of the samples stays with its first part, so that
 * sums of accounts are right.
 */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/array.h"
#include "base/memory.h"
#include "otlp_profiles.pb-c.h"
#include "output/halves.h"
#include "output/otlp_profile_id.h"
#include "output/protobuf_json.h"
#include "output/protobuf_tables.h"

enum { MAPPINGS, LOCATIONS, FUNCTIONS, LINKS, TEXTS, ATTRIBUTES, STACKS };

/* The first item of each is the empty one. */
static const struct protobuf_table tables[] = {
	[MAPPINGS] = {"mapping_table", .first = true},	 [LOCATIONS] = {"location_table", .first = true},
	[FUNCTIONS] = {"function_table", .first = true}, [LINKS] = {"link_table", .first = true},
	[TEXTS] = {"string_table", .first = true},	 [ATTRIBUTES] = {"attribute_table", .first = true},
	[STACKS] = {"stack_table", .first = true},
};

static const struct protobuf_name names[] = {
	{&otlp__profile__descriptor, "attribute_indices", ATTRIBUTES},
	{&otlp__value_type__descriptor, "type_strindex", TEXTS},
	{&otlp__value_type__descriptor, "unit_strindex", TEXTS},
	{&otlp__sample__descriptor, "stack_index", STACKS},
	{&otlp__sample__descriptor, "attribute_indices", ATTRIBUTES},
	{&otlp__mapping__descriptor, "filename_strindex", TEXTS},
	{&otlp__mapping__descriptor, "attribute_indices", ATTRIBUTES},
	{&otlp__location__descriptor, "mapping_index", MAPPINGS},
	{&otlp__location__descriptor, "attribute_indices", ATTRIBUTES},
	{&otlp__line__descriptor, "function_index", FUNCTIONS},
	{&otlp__function__descriptor, "name_strindex", TEXTS},
	{&otlp__function__descriptor, "system_name_strindex", TEXTS},
	{&otlp__function__descriptor, "filename_strindex", TEXTS},
	{&otlp__key_value_and_unit__descriptor, "key_strindex", TEXTS},
	{&otlp__stack__descriptor, "location_indices", LOCATIONS},
};

static const struct protobuf_form form = {tables, ARRAY_SIZE(tables), names, ARRAY_SIZE(names)};

/* The samples of a message, in their order, that a half has: from `first` up to `end`, and not the last ones
 * if `last` is not set. */
struct sample_range {
	size_t first, end;
	bool last;
	size_t at; /* number of samples that were gone through */
};

static size_t count_samples(const Otlp__ProfilesData *data)
{
	size_t nr = 0;

	for (size_t r = 0; r < data->n_resource_profiles; r++) {
		const Otlp__ResourceProfiles *resource = data->resource_profiles[r];

		for (size_t s = 0; s < resource->n_scope_profiles; s++)
			for (size_t p = 0; p < resource->scope_profiles[s]->n_profiles; p++)
				nr += resource->scope_profiles[s]->profiles[p]->n_samples;
	}
	return nr;
}

static bool is_account(const Otlp__ProfilesDictionary *dictionary, int32_t attribute)
{
	static const char beginning[] = "nhmtap.samples.";
	int32_t key;

	if (attribute < 0 || (size_t)attribute >= dictionary->n_attribute_table)
		return false;
	key = dictionary->attribute_table[attribute]->key_strindex;
	return key >= 0 && (size_t)key < dictionary->n_string_table &&
	       !strncmp(dictionary->string_table[key], beginning, strlen(beginning));
}

/* Makes a profile the later part of one. */
static void make_later_part(const Otlp__ProfilesDictionary *dictionary, Otlp__Profile *profile)
{
	size_t nr = 0;

	for (size_t i = 0; i < profile->n_attribute_indices; i++)
		if (!is_account(dictionary, profile->attribute_indices[i]))
			profile->attribute_indices[nr++] = profile->attribute_indices[i];
	profile->n_attribute_indices = nr;
	free(profile->profile_id.data);
	profile->profile_id = otlp_profile_id();
}

/* Leaves the range's samples of a profile. Returns whether the half has the profile. */
static bool keep_samples(const Otlp__ProfilesDictionary *dictionary, Otlp__Profile *profile,
			 struct sample_range *range)
{
	size_t begin = range->at, all = profile->n_samples, nr = 0;

	for (size_t i = 0; i < all; i++, range->at++) {
		if (range->at >= range->first && range->at < range->end)
			profile->samples[nr++] = profile->samples[i];
		else
			otlp__sample__free_unpacked(profile->samples[i], NULL);
	}
	profile->n_samples = nr;
	if (nr && begin < range->first)
		make_later_part(dictionary, profile);
	/* One without samples has an account, too. */
	return all ? nr > 0 : begin >= range->first && (begin < range->end || range->last);
}

static bool keep_profiles(const Otlp__ProfilesDictionary *dictionary, Otlp__ScopeProfiles *scope,
			  struct sample_range *range)
{
	size_t nr = 0;

	for (size_t i = 0; i < scope->n_profiles; i++) {
		if (keep_samples(dictionary, scope->profiles[i], range))
			scope->profiles[nr++] = scope->profiles[i];
		else
			otlp__profile__free_unpacked(scope->profiles[i], NULL);
	}
	scope->n_profiles = nr;
	return nr > 0;
}

static bool keep_scopes(const Otlp__ProfilesDictionary *dictionary, Otlp__ResourceProfiles *resource,
			struct sample_range *range)
{
	size_t nr = 0;

	for (size_t i = 0; i < resource->n_scope_profiles; i++) {
		if (keep_profiles(dictionary, resource->scope_profiles[i], range))
			resource->scope_profiles[nr++] = resource->scope_profiles[i];
		else
			otlp__scope_profiles__free_unpacked(resource->scope_profiles[i], NULL);
	}
	resource->n_scope_profiles = nr;
	return nr > 0;
}

static void keep_resources(Otlp__ProfilesData *data, struct sample_range range)
{
	size_t nr = 0;

	for (size_t i = 0; i < data->n_resource_profiles; i++) {
		if (keep_scopes(data->dictionary, data->resource_profiles[i], &range))
			data->resource_profiles[nr++] = data->resource_profiles[i];
		else
			otlp__resource_profiles__free_unpacked(data->resource_profiles[i], NULL);
	}
	data->n_resource_profiles = nr;
}

/* How a message is read and written. */
struct message_encoding {
	Otlp__ProfilesData *(*read)(const char *bytes, size_t size); /* NULL: it is none */
	struct half (*write)(const Otlp__ProfilesData *data);
};

/* Makes a half of the message, or nothing. Returns whether it could. */
static bool make_half(const struct message_encoding *encoding, const char *bytes, size_t size, int which,
		      struct half *half)
{
	Otlp__ProfilesData *data = encoding->read(bytes, size);
	size_t nr = data && data->dictionary ? count_samples(data) : 0, bounds[] = {0, nr / 2, nr};
	bool made = false;

	if (nr > 1) {
		keep_resources(data, (struct sample_range){bounds[which], bounds[which + 1], which == 1, 0});
		made = protobuf_prune(&data->base, &data->dictionary->base, &form);
	}
	if (made)
		*half = encoding->write(data);
	if (data)
		otlp__profiles_data__free_unpacked(data, NULL);
	return made;
}

static bool halve_document(const struct message_encoding *encoding, const char *bytes, size_t size,
			   struct half halves[2])
{
	if (!make_half(encoding, bytes, size, 0, &halves[0]))
		return false;
	if (make_half(encoding, bytes, size, 1, &halves[1]))
		return true;
	free(halves[0].bytes);
	return false;
}

/* --- the encodings ---------------------------------------------------------------------------- */

static Otlp__ProfilesData *read_binary(const char *bytes, size_t size)
{
	return otlp__profiles_data__unpack(NULL, size, (const uint8_t *)bytes);
}

static struct half write_binary(const Otlp__ProfilesData *data)
{
	struct half half = {.size = otlp__profiles_data__get_packed_size(data)};

	half.bytes = xmalloc(half.size);
	otlp__profiles_data__pack(data, (uint8_t *)half.bytes);
	return half;
}

static Otlp__ProfilesData *read_text(const char *bytes, size_t size)
{
	json_t *object = json_loadb(bytes, size, 0, NULL);
	ProtobufCMessage *data = object ? protobuf_of_json(&otlp__profiles_data__descriptor, object) : NULL;

	json_decref(object);
	return (Otlp__ProfilesData *)data;
}

static struct half write_text(const Otlp__ProfilesData *data)
{
	struct compact line = {0};

	protobuf_json(&line, &data->base);
	compact_add(&line, "\n", 1);
	return (struct half){line.text, line.used};
}

bool otlp_profiles_halve(const char *bytes, size_t size, struct half halves[2])
{
	return halve_document(&(struct message_encoding){read_binary, write_binary}, bytes, size, halves);
}

bool otlp_profiles_json_halve(const char *bytes, size_t size, struct half halves[2])
{
	return halve_document(&(struct message_encoding){read_text, write_text}, bytes, size, halves);
}
