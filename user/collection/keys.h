/* SPDX-License-Identifier: GPL-2.0-only */
/* Numbers for keys of equal size, in the order in which they were first seen. */
#ifndef NHMTAP_KEYS_H
#define NHMTAP_KEYS_H

#include <stddef.h>
#include <linux/types.h>

struct keys {
	size_t size;   /* of a key, in bytes; a multiple of 8 */
	size_t nr;     /* keys so far: numbers 0 to nr - 1 */
	char *list;    /* the keys by number */
	size_t room;
	__u32 *places; /* open addressing: number + 1, or 0 for a free place */
	size_t nr_places;
};

void keys_init(struct keys *keys, size_t size);
void keys_release(struct keys *keys);

/* The number of a key, a new one if it was not seen before. */
__u32 keys_number(struct keys *keys, const void *key);

/* The key of a number; valid up to the next new key. */
const void *keys_at(const struct keys *keys, __u32 number);

#endif
