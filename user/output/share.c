// SPDX-License-Identifier: GPL-2.0-only
#include "output/share.h"

#include <math.h>

double share_square(double weight, double samples)
{
	return samples > 0 ? weight * weight / samples : 0;
}

/* A share s has the variance (1 - s)² own + s² others, by the weights' variances relative to the whole. Equal
 * samples would have s (1 - s) / n. This alone would take a single heavy sample among many for certain. */
double share_error(double weight, double square, double whole, double squares)
{
	const double z2 = NORMAL_95 * NORMAL_95;
	double share, variance, equal, centre, half;

	if (whole <= 0 || squares <= 0)
		return 0;
	share = fmin(fmax(weight / whole, 0), 1);
	variance = ((1 - share) * (1 - share) * square + share * share * fmax(squares - square, 0)) /
		   (whole * whole);
	equal = whole * whole / squares;
	if (variance > 0)
		equal = fmin(equal, share * (1 - share) / variance);
	centre = (share * equal + z2 / 2) / (equal + z2);
	half = NORMAL_95 / (equal + z2) * sqrt(share * (1 - share) * equal + z2 / 4);
	return fabs(centre - share) + half;
}
