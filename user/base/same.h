/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether names and other short texts are the same. A call of memcmp(3) would take most of the time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool is_same(const char *one, const char *other, size_t length)
{
	if (length > 16 || length < 2)
		return !memcmp(one, other, length);
	if (length >= 8)
		return !memcmp(one, other, 8) && !memcmp(one + length - 8, other + length - 8, 8);
	if (length >= 4)
		return !memcmp(one, other, 4) && !memcmp(one + length - 4, other + length - 4, 4);
	return !memcmp(one, other, 2) && one[length - 1] == other[length - 1];
}
