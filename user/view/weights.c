// SPDX-License-Identifier: GPL-2.0-only
#include "view/weights.h"

#include <math.h>

#include "base/array.h"
#include "output/calls.h"
#include "output/member.h"
#include "output/share.h"

struct stood_for stood_for_by(const json_t *entry)
{
	json_int_t sum = calls_weight(entry), samples = integer(entry, "samples");

	if (!samples)
		samples = integer(entry, "count");
	if (sum <= 0)
		return (struct stood_for){0};
	return (struct stood_for){sum, share_square(sum, samples > 0 ? samples : 1), samples};
}

void stood_for_add(struct stood_for *to, const struct stood_for *more)
{
	to->sum += more->sum;
	to->square += more->square;
	to->samples = count_sum(to->samples, more->samples);
}

double weight_share(const struct stood_for *part, const struct stood_for *whole)
{
	return whole->sum ? 100 * part->sum / whole->sum : 0;
}

double weight_share_error(const struct stood_for *part, const struct stood_for *whole)
{
	return 100 * share_error(part->sum, part->square, whole->sum, whole->square);
}

double difference_error(const struct stood_for *before, const struct stood_for *now)
{
	return NORMAL_95 * sqrt(before->square + now->square);
}

/* Student's t for 95 %, by degrees of freedom from 1; beyond, nearly that of a normal distribution. */
static double student_95(size_t freedom)
{
	static const double table[] = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
				       2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};

	return !freedom ? INFINITY : freedom <= ARRAY_SIZE(table) ? table[freedom - 1] : 2.086;
}

double weight_mean_error(double deviation, json_int_t values)
{
	return deviation ? deviation * student_95(values > 1 ? values - 1 : 0) : 0;
}
