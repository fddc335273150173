// SPDX-License-Identifier: GPL-2.0-only
#include "collection/keys.h"

#include <stdlib.h>
#include <string.h>

void keys_init(struct keys *keys, size_t size)
{
	*keys = (struct keys){.size = size};
}

void keys_release(struct keys *keys)
{
	free(keys->list);
	free(keys->places);
	*keys = (struct keys){0};
}

const void *keys_at(const struct keys *keys, __u32 number)
{
	return keys->list + number * keys->size;
}

static __u64 hash_of(const void *key, size_t size)
{
	__u64 hash = 0, word;

	for (size_t i = 0; i < size; i += sizeof(word)) {
		memcpy(&word, (const char *)key + i, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash;
}

/* The place of a key, or the free one where it would go. */
static __u32 *place_of(const struct keys *keys, const void *key)
{
	size_t at = hash_of(key, keys->size) & (keys->nr_places - 1);

	while (keys->places[at] && memcmp(keys_at(keys, keys->places[at] - 1), key, keys->size))
		at = (at + 1) & (keys->nr_places - 1);
	return &keys->places[at];
}

/* Keeps at least half of the places free. */
static void grow(struct keys *keys)
{
	if (keys->nr == keys->room) {
		keys->room = keys->room ? 2 * keys->room : 64;
		keys->list = realloc(keys->list, keys->room * keys->size);
	}
	if (2 * (keys->nr + 1) <= keys->nr_places)
		return;
	free(keys->places);
	keys->nr_places = keys->nr_places ? 2 * keys->nr_places : 128;
	keys->places = calloc(keys->nr_places, sizeof(*keys->places));
	for (size_t number = 0; number < keys->nr; number++)
		*place_of(keys, keys_at(keys, number)) = number + 1;
}

__u32 keys_number(struct keys *keys, const void *key)
{
	__u32 *place;

	grow(keys);
	place = place_of(keys, key);
	if (!*place) {
		memcpy(keys->list + keys->nr * keys->size, key, keys->size);
		*place = ++keys->nr;
	}
	return *place - 1;
}
