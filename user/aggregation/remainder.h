/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sums of keys that are not kept one by one, by what must still be told apart: the kind (entry_kind_t), for
 * the samples themselves also the first address, and the source of data (data_source_t). There are few of
 * these, whatever the keys are.
 */
#pragma once

#include <stddef.h>
#include <linux/types.h>

#include "aggregation/layout.h"
#include "aggregation/sums.h"

struct remainder {
	const struct member *kind, *address, *source; /* of the key; NULL: it has none */
	struct sums sums;			      /* its keys are reduced to these members */
	__u64 *keys;				      /* how many keys each of them stands for */
	size_t room;				      /* the number that there is room for in `keys` */
};

void remainder_init(struct remainder *remainder, const struct layout *layout);
void remainder_release(struct remainder *remainder);

/* Adds the values of a key. */
void remainder_add(struct remainder *remainder, const void *key, const __u64 *values);

void remainder_clear(struct remainder *remainder);
