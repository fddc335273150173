// SPDX-License-Identifier: GPL-2.0-only
#include "naming/pool.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Many pools stay small, so a new block is as large as all before it, within these bounds. */
#define BLOCK_LEAST 1024
#define BLOCK_MOST  16384

struct pool_block {
	struct pool_block *next;
	size_t used, size;
	alignas(max_align_t) char data[];
};

void *pool_take(struct pool *pool, size_t size)
{
	struct pool_block *block = pool->blocks;
	void *taken;

	size = (size + alignof(max_align_t) - 1) & -alignof(max_align_t);
	if (!block || block->size - block->used < size) {
		size_t room = pool->bytes < BLOCK_LEAST ? BLOCK_LEAST : pool->bytes;

		room = room > BLOCK_MOST ? BLOCK_MOST : room;
		room = size > room ? size : room;
		block = xcalloc(1, sizeof(*block) + room);
		block->size = room;
		block->next = pool->blocks;
		pool->blocks = block;
		pool->bytes += sizeof(*block) + room;
	}
	taken = block->data + block->used;
	block->used += size;
	return taken;
}

char *pool_text(struct pool *pool, const char *text, size_t length)
{
	return memcpy(pool_take(pool, length + 1), text, length);
}

void pool_release(struct pool *pool)
{
	for (struct pool_block *block = pool->blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	*pool = (struct pool){0};
}

__u64 map_key(const char *text, __u64 seed)
{
	__u64 hash = seed ^ 0xcbf29ce484222325;

	while (*text)
		hash = (hash ^ (unsigned char)*text++) * 0x100000001b3; /* FNV-1a */
	return hash;
}

/* The entry of the key, or the free entry where it belongs. */
static struct map_entry *place(const struct map *map, __u64 key)
{
	size_t at = (key * 0x9e3779b97f4a7c15ULL >> 20) & (map->room - 1); /* Fibonacci hashing */

	while (map->entries[at].value && map->entries[at].key != key)
		at = (at + 1) & (map->room - 1);
	return &map->entries[at];
}

void *map_find(const struct map *map, __u64 key)
{
	return map->room ? place(map, key)->value : NULL;
}

static void grow(struct map *map)
{
	struct map old = *map;

	map->room = old.room ? 2 * old.room : 64;
	map->entries = xcalloc(map->room, sizeof(*map->entries));
	for (size_t i = 0; i < old.room; i++)
		if (old.entries[i].value)
			*place(map, old.entries[i].key) = old.entries[i];
	free(old.entries);
}

void map_put(struct map *map, __u64 key, void *value)
{
	if (2 * (map->nr + 1) > map->room)
		grow(map);
	*place(map, key) = (struct map_entry){key, value};
	map->nr++;
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
