// SPDX-License-Identifier: GPL-2.0-only
#include "metric/moments.h"

#include <math.h>

void moments_add(struct moments *moments, double value)
{
	double delta = value - moments->mean;

	moments->n++;
	moments->mean += delta / moments->n;
	moments->squares += delta * (value - moments->mean);
	moments->least = moments->n == 1 ? value : fmin(moments->least, value);
	moments->most = moments->n == 1 ? value : fmax(moments->most, value);
}

double moments_variance(const struct moments *moments)
{
	return moments->n > 1 ? moments->squares / (moments->n - 1) : NAN;
}
