// SPDX-License-Identifier: GPL-2.0-only
#include "base/map.h"

#include <stdlib.h>

#include "base/memory.h"

__u64 map_key(const char *text, __u64 seed)
{
	__u64 hash = seed ^ 0xcbf29ce484222325;

	while (*text)
		hash = (hash ^ (unsigned char)*text++) * 0x100000001b3; /* FNV-1a */
	return hash;
}

/* Where a search for the key begins. */
static size_t first_of(const struct map *map, __u64 key)
{
	return (key * 0x9e3779b97f4a7c15ULL >> 20) & (map->room - 1); /* Fibonacci hashing */
}

void *map_find_next(const struct map *map, __u64 key, size_t *at)
{
	const struct map_entry *entry;

	if (!map->room)
		return NULL;
	do {
		entry = &map->entries[(first_of(map, key) + (*at)++) & (map->room - 1)];
	} while (entry->value && entry->key != key);
	return entry->value;
}

void *map_find(const struct map *map, __u64 key)
{
	size_t at = 0;

	return map_find_next(map, key, &at);
}

static void add_to_room(struct map *map, struct map_entry entry)
{
	size_t at = first_of(map, entry.key);

	while (map->entries[at].value)
		at = (at + 1) & (map->room - 1);
	map->entries[at] = entry;
}

static void grow_map(struct map *map)
{
	struct map old = *map;

	map->room = old.room ? 2 * old.room : 64;
	map->entries = xcalloc(map->room, sizeof(*map->entries));
	for (size_t i = 0; i < old.room; i++)
		if (old.entries[i].value)
			add_to_room(map, old.entries[i]);
	free(old.entries);
}

void map_put(struct map *map, __u64 key, void *value)
{
	if (2 * (map->nr + 1) > map->room)
		grow_map(map);
	add_to_room(map, (struct map_entry){key, value});
	map->nr++;
}

/* Moves entries that follow back to the free one, unless a search for them begins behind it. */
static void close_gap(struct map *map, size_t gap)
{
	size_t mask = map->room - 1;

	for (size_t at = (gap + 1) & mask; map->entries[at].value; at = (at + 1) & mask)
		if (((at - first_of(map, map->entries[at].key)) & mask) >= ((at - gap) & mask)) {
			map->entries[gap] = map->entries[at];
			map->entries[at].value = NULL;
			gap = at;
		}
}

void map_remove(struct map *map, __u64 key, const void *value)
{
	size_t at = first_of(map, key);

	while (map->entries[at].value != value || map->entries[at].key != key)
		at = (at + 1) & (map->room - 1);
	map->entries[at].value = NULL;
	map->nr--;
	close_gap(map, at);
}

void *map_next(const struct map *map, size_t *at)
{
	while (*at < map->room)
		if (map->entries[(*at)++].value)
			return map->entries[*at - 1].value;
	return NULL;
}

void map_release(struct map *map)
{
	free(map->entries);
	*map = (struct map){0};
}

size_t map_bytes(const struct map *map)
{
	return map->room * sizeof(*map->entries);
}
