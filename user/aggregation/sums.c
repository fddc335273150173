// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "shared.h"

static size_t words(const struct sums *sums)
{
	return sums->layout->value_size / sizeof(__u64);
}

static void mark_maxima(struct sums *sums)
{
	const struct layout *layout = sums->layout;

	sums->maximum = xcalloc(words(sums), sizeof(bool));
	for (size_t i = 0; i < layout->nr_values; i++)
		sums->maximum[layout->values[i].offset / sizeof(__u64)] = layout->values[i].maximum;
}

void sums_init(struct sums *sums, const struct layout *layout, unsigned int stack_frames)
{
	*sums = (struct sums){.layout = layout};
	interned_init(&sums->keys, layout->key_size);
	mark_maxima(sums);
	sums->stacks = stack_frames ? stacks_new(stack_frames) : NULL;
}

void sums_release(struct sums *sums)
{
	interned_release(&sums->keys);
	stacks_release(sums->stacks);
	free(sums->values);
	free(sums->maximum);
}

void sums_merge(const struct sums *sums, __u64 *sum, const __u64 *values)
{
	size_t nr = words(sums);

	for (size_t i = 0; i < nr; i++)
		if (!sums->maximum[i])
			sum[i] += values[i];
		else if (values[i] > sum[i])
			sum[i] = values[i];
}

__u32 sums_add(struct sums *sums, const void *key, const __u64 *values)
{
	size_t nr = words(sums), before = sums->keys.nr;
	__u32 number = interned_number(&sums->keys, key);
	__u64 *sum;

	sums->values = xroom(sums->values, number, &sums->room, nr * sizeof(__u64));
	sum = sums->values + number * nr;
	if (number == before)
		memcpy(sum, values, nr * sizeof(__u64));
	else
		sums_merge(sums, sum, values);
	return number;
}

const __u64 *sums_at(const struct sums *sums, __u32 number)
{
	return sums->values + number * words(sums);
}

/* --- keeping some ----------------------------------------------------------------------------- */

/* Adds a key of earlier sums, whose stack is copied. */
static void add_again(struct sums *sums, const struct sums *before, __u32 number)
{
	const struct member *stack = layout_key_of_type(sums->layout, "stack_id_t");
	size_t size = sums->layout->key_size;
	__u64 key[size / sizeof(__u64)];
	__u32 *in_key;

	memcpy(key, interned_at(&before->keys, number), size);
	if (sums->stacks) {
		in_key = (__u32 *)((char *)key + stack->offset);
		if (*in_key >= STACK_FIRST)
			*in_key = stacks_copy(sums->stacks, before->stacks, *in_key);
	}
	sums_add(sums, key, sums_at(before, number));
}

void sums_keep(struct sums *sums, const bool *kept)
{
	struct sums before = *sums;

	interned_init(&sums->keys, before.keys.size);
	sums->values = NULL;
	sums->room = 0;
	sums->stacks = before.stacks ? stacks_like(before.stacks) : NULL;
	for (size_t number = 0; number < before.keys.nr; number++)
		if (kept[number])
			add_again(sums, &before, number);
	interned_release(&before.keys);
	stacks_release(before.stacks);
	free(before.values);
}

struct weighed {
	__u64 weight;
	__u32 number;
};

static int by_weight(const void *a, const void *b)
{
	const struct weighed *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return (x->number > y->number) - (x->number < y->number);
}

void sums_shed(struct sums *sums, size_t most,
	       void (*shed)(void *context, const void *key, const __u64 *values), void *context)
{
	size_t nr = sums->keys.nr;
	struct weighed *order;
	bool *kept;

	if (nr <= most)
		return;
	order = xcalloc(nr, sizeof(*order));
	kept = xcalloc(nr, sizeof(*kept));
	for (size_t i = 0; i < nr; i++)
		order[i] = (struct weighed){((const struct value_head *)sums_at(sums, i))->period, i};
	qsort(order, nr, sizeof(*order), by_weight);
	for (size_t i = 0; i < nr; i++)
		if (i < most)
			kept[order[i].number] = true;
		else
			shed(context, interned_at(&sums->keys, order[i].number),
			     sums_at(sums, order[i].number));
	sums_keep(sums, kept);
	free(order);
	free(kept);
}

void sums_clear(struct sums *sums)
{
	sums->values = xtrim(sums->values, sums->keys.nr, &sums->room, sums->layout->value_size);
	interned_clear(&sums->keys);
	if (sums->stacks)
		stacks_clear(sums->stacks);
}
