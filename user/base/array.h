/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include <stddef.h>

/* The number of an array's elements. Not for a pointer. */
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* The first index below `nr` for which `is_before`, an expression of `i`, is false; `nr` if there is none. It
 * must be true for all indices before that and for none behind. */
#define FIRST_NOT(nr, i, is_before)                                                                          \
	({                                                                                                   \
		size_t low_ = 0, high_ = (nr);                                                               \
		while (low_ < high_) {                                                                       \
			size_t i = low_ + (high_ - low_) / 2;                                                \
			if (is_before)                                                                       \
				low_ = i + 1;                                                                \
			else                                                                                 \
				high_ = i;                                                                   \
		}                                                                                            \
		low_;                                                                                        \
	})
