/* SPDX-License-Identifier: GPL-2.0-only */
/* Numbers for items of equal size, in the order in which they were first seen. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct interned_slot {
	__u32 number; /* number plus 1; 0: the slot is free */
	__u32 hash;   /* so that few other items need to be compared */
};

struct interned {
	size_t size; /* of an item, in bytes; a multiple of 8 */
	size_t nr;   /* items so far: numbers 0 to nr - 1 */
	char *list;  /* the items by number */
	size_t room;
	struct interned_slot *slots; /* open addressing */
	size_t nr_slots;
};

void interned_init(struct interned *interned, size_t size);
void interned_release(struct interned *interned);

/* Returns the number of an item; a new one if it was not seen before. */
__u32 interned_number(struct interned *interned, const void *item);

/* Returns the item of a number; valid until the next new item. */
const void *interned_at(const struct interned *interned, __u32 number);

/* Forgets all items, and frees memory that they did not need. */
void interned_clear(struct interned *interned);

/* Whether `nr` items use so few slots of a hash table that it should be freed. */
bool interned_is_sparse(size_t nr, size_t nr_slots);
