/* SPDX-License-Identifier: GPL-2.0-only */
/* What samples stand for, with the variance that it has because samples come by chance. */
#pragma once

#include <jansson.h>

/* Starts as {0}. */
struct stood_for {
	double sum, square;
	json_int_t samples;
};

/* What an entry, or `rest`, stands for. */
struct stood_for stood_for_by(const json_t *entry);

void stood_for_add(struct stood_for *to, const struct stood_for *more);

/* The part of a whole in percent, and how far that may be off (share_error()), in percentage points. */
double weight_share(const struct stood_for *part, const struct stood_for *whole);
double weight_share_error(const struct stood_for *part, const struct stood_for *whole);

/* Half of the interval of 95 % of the difference of two sums. */
double difference_error(const struct stood_for *before, const struct stood_for *now);

/* Half of the interval of 95 % of a mean of so many values, by its standard deviation. */
double weight_mean_error(double deviation, json_int_t values);
