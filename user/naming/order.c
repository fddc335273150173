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

static bool is_ordered(const char *list, size_t nr, size_t size)
{
	for (size_t i = 1; i < nr; i++)
		if (key_of(list, i, size) < key_of(list, i - 1, size))
			return false;
	return true;
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

void order_by_address(void *list, size_t nr, size_t size)
{
	char *from = list, *to;

	if (is_ordered(list, nr, size))
		return;
	to = xmalloc(nr * size);
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
