// SPDX-License-Identifier: GPL-2.0-only
#include "base/interned.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

void interned_init(struct interned *interned, size_t size)
{
	*interned = (struct interned){.size = size};
}

void interned_release(struct interned *interned)
{
	free(interned->list);
	free(interned->slots);
	*interned = (struct interned){0};
}

const void *interned_at(const struct interned *interned, __u32 number)
{
	return interned->list + number * interned->size;
}

/* The first slot where an item with this hash may be. */
static size_t first_slot(const struct interned *interned, __u32 hash)
{
	return hash & (interned->nr_slots - 1);
}

static size_t next_slot(const struct interned *interned, size_t at)
{
	return (at + 1) & (interned->nr_slots - 1);
}

/* The slot of an item, or the free slot where it belongs. */
static struct interned_slot *slot_of(const struct interned *interned, const void *item, __u32 hash)
{
	size_t at = first_slot(interned, hash);

	for (;; at = next_slot(interned, at)) {
		struct interned_slot *slot = &interned->slots[at];

		if (!slot->number || (slot->hash == hash &&
				      !memcmp(interned_at(interned, slot->number - 1), item, interned->size)))
			return slot;
	}
}

/* Makes room for another item, and keeps at least half of the slots free. */
static void grow_slots(struct interned *interned)
{
	struct interned_slot *before = interned->slots;
	size_t nr_before = interned->nr_slots;

	interned->list = xroom(interned->list, interned->nr, &interned->room, interned->size);
	if (2 * (interned->nr + 1) <= interned->nr_slots)
		return;
	interned->nr_slots = nr_before ? 2 * nr_before : 128;
	interned->slots = xcalloc(interned->nr_slots, sizeof(*interned->slots));
	for (size_t i = 0; i < nr_before; i++) {
		size_t at = first_slot(interned, before[i].hash);

		if (!before[i].number)
			continue;
		while (interned->slots[at].number)
			at = next_slot(interned, at);
		interned->slots[at] = before[i];
	}
	free(before);
}

__u32 interned_number(struct interned *interned, const void *item)
{
	__u32 hash = hash_bytes(item, interned->size);
	struct interned_slot *slot;

	grow_slots(interned);
	slot = slot_of(interned, item, hash);
	if (!slot->number) {
		memcpy(interned->list + interned->nr * interned->size, item, interned->size);
		*slot = (struct interned_slot){++interned->nr, hash};
	}
	return slot->number - 1;
}

/* A quarter of the slots is used when a table has grown. It is freed only if less than an eighth was used, so
 * that sets of about the same size do not make it again each time. */
bool interned_is_sparse(size_t nr, size_t nr_slots)
{
	return nr_slots > 1024 && nr < nr_slots / 8;
}

void interned_clear(struct interned *interned)
{
	interned->list = xtrim(interned->list, interned->nr, &interned->room, interned->size);
	if (interned_is_sparse(interned->nr, interned->nr_slots)) {
		free(interned->slots);
		interned->slots = NULL;
		interned->nr_slots = 0;
	} else if (interned->nr) {
		memset(interned->slots, 0, interned->nr_slots * sizeof(*interned->slots));
	}
	interned->nr = 0;
}
