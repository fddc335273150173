/* SPDX-License-Identifier: GPL-2.0-only */
/* Running mean and sum of squared differences of values: Welford's method, which does not lose precision with
 * large values. A zeroed struct has no values yet. */
#pragma once

#include <linux/types.h>

struct moments {
	__u64 n;
	double mean, squares, least, most;
};

void moments_add(struct moments *moments, double value);

/* The variance of the values, not of their mean. NAN for fewer than two values. */
double moments_variance(const struct moments *moments);
