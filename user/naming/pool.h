/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that is given back in one piece, and pointers by number. */
#ifndef NHMTAP_POOL_H
#define NHMTAP_POOL_H

#include <stddef.h>
#include <linux/types.h>

struct pool {
	struct block *blocks;
	size_t bytes; /* taken from the heap so far */
};

/* Memory of zeros, aligned for any type; valid up to pool_release(). */
void *pool_take(struct pool *pool, size_t size);
char *pool_text(struct pool *pool, const char *text, size_t length);
void pool_release(struct pool *pool);

struct map {
	struct map_entry {
		__u64 key;
		void *value; /* NULL: a free place */
	} * entries;
	size_t nr, room;
};

/* A text's key, which others may share. `seed`: what else makes it another one, or 0. */
__u64 map_key(const char *text, __u64 seed);
/* The value of a key, NULL if there is none. */
void *map_find(const struct map *map, __u64 key);
/* The key must be new, the value not NULL. */
void map_put(struct map *map, __u64 key, void *value);
void map_release(struct map *map);
size_t map_bytes(const struct map *map);

#endif
