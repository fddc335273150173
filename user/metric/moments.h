/* SPDX-License-Identifier: GPL-2.0-only */
/* Running mean and sum of squared differences of the values of repeated executions: Welford's method,
 * which loses no digits to large values. A zeroed one has none yet. */
#ifndef NHMTAP_MOMENTS_H
#define NHMTAP_MOMENTS_H

#include <linux/types.h>

struct moments {
	__u64 n;
	double mean, squares, least, most;
};

void moments_add(struct moments *moments, double value);

/* Of the values themselves; NAN for fewer than two. */
double moments_variance(const struct moments *moments);

#endif
