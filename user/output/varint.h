/* SPDX-License-Identifier: GPL-2.0-only */
/* Integers as protobuf and ClickHouse write them: LEB128, seven bits a byte, the lowest first. */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

#define VARINT_MOST 10 /* bytes */

/* Writes a number to `at`, where VARINT_MOST bytes must fit. Returns the end. */
static inline char *varint_put(char *at, __u64 number)
{
	for (; number > 127; number >>= 7)
		*at++ = number | 128;
	*at++ = number;
	return at;
}

/* Reads a number, and moves `at` behind it. Returns false if it does not end before `end`. */
static inline bool varint_read(const char **at, const char *end, __u64 *number)
{
	*number = 0;
	for (int shift = 0; *at < end && shift < 64; shift += 7) {
		unsigned char byte = *(*at)++;

		*number |= (byte & 127ULL) << shift;
		if (!(byte & 128))
			return true;
	}
	return false;
}
