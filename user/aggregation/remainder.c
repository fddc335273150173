// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/remainder.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void remainder_init(struct remainder *remainder, const struct layout *layout)
{
	*remainder = (struct remainder){.kind = layout_key_of_type(layout, "entry_kind_t"),
					.address = layout_key_of_type(layout, "address_t"),
					.source = layout_key_of_type(layout, "data_source_t")};
	sums_init(&remainder->sums, layout, 0);
}

void remainder_release(struct remainder *remainder)
{
	sums_release(&remainder->sums);
	free(remainder->keys);
}

static void copy_member(void *to, const void *from, const struct member *member)
{
	memcpy((char *)to + member->offset, (const char *)from + member->offset, member->size);
}

static void reduce(const struct remainder *remainder, void *reduced, const void *key)
{
	const struct member *kind = remainder->kind;

	if (remainder->source)
		copy_member(reduced, key, remainder->source);
	if (!kind)
		return;
	copy_member(reduced, key, kind);
	if (!*(const __u32 *)((const char *)key + kind->offset) && remainder->address)
		copy_member(reduced, key, remainder->address);
}

void remainder_add(struct remainder *remainder, const void *key, const __u64 *values)
{
	struct sums *sums = &remainder->sums;
	size_t known = sums->keys.nr, size = sums->layout->key_size;
	__u64 reduced[size / sizeof(__u64)];
	__u32 number;

	memset(reduced, 0, size);
	reduce(remainder, reduced, key);
	number = sums_add(sums, reduced, values);
	remainder->keys = xroom(remainder->keys, number, &remainder->room, sizeof(*remainder->keys));
	if (number == known)
		remainder->keys[number] = 0;
	remainder->keys[number]++;
}

void remainder_clear(struct remainder *remainder)
{
	sums_clear(&remainder->sums);
}
