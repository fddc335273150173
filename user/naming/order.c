// SPDX-License-Identifier: GPL-2.0-only
#include "naming/order.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

#include "base/memory.h"

/* An item has a few words: to call memcpy() for it takes longer than to copy them. */
static void copy_item(char *to, const char *from, size_t size)
{
	for (size_t at = 0; at < size; at += sizeof(__u64))
		memcpy(to + at, from + at, sizeof(__u64));
}

static __u64 key_of(const char *list, size_t i, size_t size)
{
	return *(const __u64 *)(list + i * size);
}

/* How many at the list's begin are in order. */
static size_t ordered(const char *list, size_t nr, size_t size)
{
	size_t i = 1;

	while (i < nr && key_of(list, i, size) >= key_of(list, i - 1, size))
		i++;
	return i < nr ? i : nr;
}

#define DIGITS 8 /* of a key, each a byte */

static __u8 digit_of(__u64 key, int digit)
{
	return key >> 8 * digit;
}

/* How many keys have which value of each digit. */
struct counts {
	size_t of[DIGITS][256];
};

static void count_digits(struct counts *counts, const char *list, size_t nr, size_t size)
{
	memset(counts, 0, sizeof(*counts));
	for (size_t i = 0; i < nr; i++)
		for (int digit = 0; digit < DIGITS; digit++)
			counts->of[digit][digit_of(key_of(list, i, size), digit)]++;
}

/* Sorts by one digit of the keys, from one list into the other. `places`: how many have which value of it. */
static void distribute(char *to, const char *from, size_t nr, size_t size, int digit, size_t places[256])
{
	size_t at = 0;

	for (int value = 0; value < 256; value++) {
		size_t count = places[value];

		places[value] = at;
		at += count;
	}
	for (size_t i = 0; i < nr; i++)
		copy_item(to + places[digit_of(key_of(from, i, size), digit)]++ * size, from + i * size,
			  size);
}

static void sort_by_key(char *list, size_t nr, size_t size)
{
	char *from = list, *to = xmalloc(nr * size);
	struct counts counts;

	count_digits(&counts, list, nr, size);
	for (int digit = 0; digit < DIGITS; digit++) {
		char *done = to;

		if (counts.of[digit][digit_of(key_of(list, 0, size), digit)] == nr)
			continue;
		distribute(to, from, nr, size, digit, counts.of[digit]);
		to = from;
		from = done;
	}
	if (from != list)
		memcpy(list, from, nr * size);
	free(from != list ? from : to);
}

/* Merges what is behind the first, all in order, with these. */
static void merge(char *list, size_t first, size_t nr, size_t size)
{
	size_t left = nr - first, at = nr;
	char *rest = xmalloc(left * size);

	memcpy(rest, list + first * size, left * size);
	while (left) {
		bool move = first && key_of(list, first - 1, size) > key_of(rest, left - 1, size);

		at--;
		memcpy(list + at * size, move ? list + --first * size : rest + --left * size, size);
	}
	free(rest);
}

/* Many lists are in order but for their end: the kernel's symbols, of which those of modules and of BPF
 * programs are the last. */
void order_by_address(void *list, size_t nr, size_t size)
{
	size_t first = ordered(list, nr, size);

	if (first == nr)
		return;
	if (first < nr / 4)
		first = 0;
	sort_by_key((char *)list + first * size, nr - first, size);
	if (first)
		merge(list, first, nr, size);
}
