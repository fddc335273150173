/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that is freed as a whole, and a map from numbers to pointers. */
#ifndef NHMTAP_POOL_H
#define NHMTAP_POOL_H

#include <stddef.h>
#include <linux/types.h>

struct pool {
	struct pool_block *blocks;
	size_t bytes; /* allocated so far */
};

/* Returns zeroed memory, aligned for any type. It is valid until pool_release(). */
void *pool_take(struct pool *pool, size_t size);
char *pool_text(struct pool *pool, const char *text, size_t length);
void pool_release(struct pool *pool);

struct map {
	struct map_entry {
		__u64 key;
		void *value; /* NULL: the entry is free */
	} * entries;
	size_t nr, room;
};

/* A hash of a text, to be used as a key; other texts may have the same. `seed` is hashed as well, so that
 * equal texts can have different keys; else 0. */
__u64 map_key(const char *text, __u64 seed);
/* Returns the value of a key; NULL if there is none. */
void *map_find(const struct map *map, __u64 key);
/* Adds a value. The key must be new, and the value not NULL. */
void map_put(struct map *map, __u64 key, void *value);
void map_release(struct map *map);
size_t map_bytes(const struct map *map);

#endif
