/* SPDX-License-Identifier: GPL-2.0-only */
/* A map from numbers to pointers. Initialized with {0}. */
#pragma once

#include <stddef.h>
#include <linux/types.h>

struct map {
	struct map_entry {
		__u64 key;
		void *value; /* NULL: the entry is free */
	} * entries;	     /* open addressing */
	size_t nr, room;
};

/* A hash of a text, to be used as a key; other texts may have the same. `seed` is hashed as well, so that
 * equal texts can have different keys; else 0. */
__u64 map_key(const char *text, __u64 seed);
/* Returns the value of a key; NULL if there is none. */
void *map_find(const struct map *map, __u64 key);
/* For a key that may have several values: returns the next one, NULL after the last. *at is 0 at first. */
void *map_find_next(const struct map *map, __u64 key, size_t *at);
/* Adds a value, which is not NULL. */
void map_put(struct map *map, __u64 key, void *value);
/* Removes a value, which must be there. */
void map_remove(struct map *map, __u64 key, const void *value);
/* Returns each value, in no order; NULL after the last. *at is 0 at first. No value may be added meanwhile. A
 * caller that removes the value which was returned must count *at down, and may get others twice. */
void *map_next(const struct map *map, size_t *at);
void map_release(struct map *map);
size_t map_bytes(const struct map *map);
