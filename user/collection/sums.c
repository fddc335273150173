// SPDX-License-Identifier: GPL-2.0-only
#include "collection/sums.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

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

void sums_add(struct sums *sums, const void *key, const __u64 *values)
{
	size_t nr = words(sums), before = sums->keys.nr;
	__u32 number = interned_number(&sums->keys, key);
	__u64 *sum;

	sums->values = xroom(sums->values, number, &sums->room, nr * sizeof(__u64));
	sum = sums->values + number * nr;
	if (number == before) {
		memcpy(sum, values, nr * sizeof(__u64));
		return;
	}
	for (size_t i = 0; i < nr; i++)
		if (!sums->maximum[i])
			sum[i] += values[i];
		else if (values[i] > sum[i])
			sum[i] = values[i];
}

const __u64 *sums_at(const struct sums *sums, __u32 number)
{
	return sums->values + number * words(sums);
}

void sums_clear(struct sums *sums)
{
	sums->values = xtrim(sums->values, sums->keys.nr, &sums->room, sums->layout->value_size);
	interned_clear(&sums->keys);
	if (sums->stacks)
		stacks_clear(sums->stacks);
}
