/* SPDX-License-Identifier: GPL-2.0-only */
/* Keys with their values, summed over CPUs and over the readings of an interval, until they are cleared. */
#ifndef NHMTAP_SUMS_H
#define NHMTAP_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "collection/layout.h"
#include "collection/stacks.h"
#include "interned.h"

struct sums {
	const struct layout *layout;
	bool *maximum; /* for each word of a value: merge by the maximum, not the sum */
	struct interned keys;
	__u64 *values;	       /* by the key's number: layout.value_size bytes for each */
	size_t room;	       /* the number of keys that `values` has room for */
	struct stacks *stacks; /* the keys' stacks; NULL: there are none */
};

/* `stack_frames`: the most frames of a stack; 0: there are no stacks. The layout must outlive the sums. */
void sums_init(struct sums *sums, const struct layout *layout, unsigned int stack_frames);
void sums_release(struct sums *sums);

/* Adds values to those of a key; its stack must be a number of sums->stacks. */
void sums_add(struct sums *sums, const void *key, const __u64 *values);

/* The values of the key with this number. */
const __u64 *sums_at(const struct sums *sums, __u32 number);

/* Forgets all keys, and frees memory that they did not need. */
void sums_clear(struct sums *sums);

#endif
