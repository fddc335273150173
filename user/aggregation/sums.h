/* SPDX-License-Identifier: GPL-2.0-only */
/* Keys with their values, summed over CPUs and over the readings of an interval, until they are cleared. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "aggregation/layout.h"
#include "aggregation/stacks.h"
#include "base/interned.h"

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

/* Adds values to those of a key, whose stack must be a number of sums->stacks. Returns the key's number. */
__u32 sums_add(struct sums *sums, const void *key, const __u64 *values);

/* The values of the key with this number. */
const __u64 *sums_at(const struct sums *sums, __u32 number);

/* Keeps the keys whose number is true in `kept`, and forgets the others. Numbers of keys and stacks change.
 */
void sums_keep(struct sums *sums, const bool *kept);

/* Adds values to a sum of values, as sums_add() does. */
void sums_merge(const struct sums *sums, __u64 *sum, const __u64 *values);

/* Keeps the `most` keys with the largest weight (the sum of their samples' periods), and gives each of the
 * others to `shed` before. */
void sums_shed(struct sums *sums, size_t most,
	       void (*shed)(void *context, const void *key, const __u64 *values), void *context);

/* Forgets all keys, and frees memory that they did not need. */
void sums_clear(struct sums *sums);
