// SPDX-License-Identifier: GPL-2.0-only
#include "naming/order.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

#include "base/memory.h"

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

/* Sorts by one byte of the keys, from one list into the other. Returns false, and does nothing, if that byte
 * is the same in all. */
static bool distribute(char *to, const char *from, size_t nr, size_t size, int shift)
{
	size_t places[256] = {0}, at = 0;

	for (size_t i = 0; i < nr; i++)
		places[key_of(from, i, size) >> shift & 255]++;
	if (places[key_of(from, 0, size) >> shift & 255] == nr)
		return false;
	for (int byte = 0; byte < 256; byte++) {
		size_t count = places[byte];

		places[byte] = at;
		at += count;
	}
	for (size_t i = 0; i < nr; i++)
		memcpy(to + places[key_of(from, i, size) >> shift & 255]++ * size, from + i * size, size);
	return true;
}

static void sort_by_key(char *list, size_t nr, size_t size)
{
	char *from = list, *to = xmalloc(nr * size);

	for (int shift = 0; shift < 64; shift += 8)
		if (distribute(to, from, nr, size, shift)) {
			char *done = to;

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
