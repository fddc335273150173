// SPDX-License-Identifier: GPL-2.0-only
#include "metric/bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* If something did not happen in a certain time, then with 95 % confidence it happens at most this number of
 * times in another period of the same length: -ln 0.05, the rule of three. */
#define UNSEEN 3

/* The times that the kernel measures do not exactly match those of the counter: switching a counter takes
 * time that is part of one but not of the other. The most seen, on the emulated Nehalem: 1.6 %. */
#define SWITCHING 0.02

/* --- readings --------------------------------------------------------------------------------- */

void turns_open(struct turns *turns, size_t nr_events, __u64 span_ns)
{
	*turns = (struct turns){.nr_events = nr_events, .first_ns = span_ns, .span_ns = span_ns};
	/* One more than TURNS_MOST: the one that is being filled. */
	turns->list = xcalloc((TURNS_MOST + 1) * nr_events, sizeof(*turns->list));
}

void turns_close(struct turns *turns)
{
	free(turns->list);
	*turns = (struct turns){0};
}

void turns_clear(struct turns *turns)
{
	turns->nr = 0;
	turns->last_ns = 0;
	turns->span_ns = turns->first_ns;
	memset(turns->list, 0, turns->nr_events * sizeof(*turns->list));
}

static void halve(struct turns *turns)
{
	for (size_t i = 0; i < turns->nr / 2; i++)
		for (size_t e = 0; e < turns->nr_events; e++) {
			struct count sum = turns->list[2 * i * turns->nr_events + e];

			count_add(&sum, &turns->list[(2 * i + 1) * turns->nr_events + e]);
			turns->list[i * turns->nr_events + e] = sum;
		}
	turns->nr /= 2;
	turns->span_ns *= 2;
}

void turns_add(struct turns *turns, const struct count *since, __u64 ns)
{
	struct count *last = &turns->list[turns->nr * turns->nr_events];

	for (size_t e = 0; e < turns->nr_events; e++)
		count_add(&last[e], &since[e]);
	turns->last_ns += ns;
	if (turns->last_ns < turns->span_ns)
		return;
	turns->last_ns = 0;
	if (++turns->nr == TURNS_MOST)
		halve(turns);
	memset(&turns->list[turns->nr * turns->nr_events], 0, turns->nr_events * sizeof(*since));
}

/* --- bounds ----------------------------------------------------------------------------------- */

/* Student's t, 99 % two-sided: the quantile for the greatest number of degrees of freedom in the table that
 * is not above the given one. */
static double quantile(size_t freedom)
{
	static const struct {
		size_t freedom;
		double t;
	} quantiles[] = {
		{7, 3.499},  {8, 3.355},  {9, 3.250},  {10, 3.169}, {12, 3.055},
		{15, 2.947}, {20, 2.845}, {30, 2.750}, {60, 2.660},
	};
	size_t i = sizeof(quantiles) / sizeof(quantiles[0]) - 1;

	while (i && quantiles[i].freedom > freedom)
		i--;
	return quantiles[i].t;
}

/* The number of readings in which an event had a counter. */
static size_t turns_of(const struct turns *turns, size_t event)
{
	size_t nr = 0;

	for (size_t i = 0; i <= turns->nr; i++)
		nr += turns->list[i * turns->nr_events + event].running_ns > 0;
	return nr;
}

/* Computes the counts without the i-th reading, for those events that are estimates. Returns whether any of
 * them had a counter in that reading. */
static bool leave_out(const struct turns *turns, size_t i, const struct count *counts, const size_t *events,
		      size_t nr, struct count *without)
{
	bool any = false;

	for (size_t k = 0; k < nr; k++) {
		const struct count *one = &turns->list[i * turns->nr_events + events[k]];
		struct count *left = &without[events[k]];

		*left = counts[events[k]];
		if (!count_is_estimate(left) || !one->running_ns)
			continue;
		any = true;
		left->value -= one->value;
		left->running_ns -= one->running_ns;
	}
	return any;
}

/* Computes the standard error by the jackknife. Returns the number of readings used, 0 if there are too
 * few. */
static size_t standard_error(const struct turns *turns, const struct count *counts, const size_t *events,
			     size_t nr, estimate_fn estimate, const void *what, double *error)
{
	struct count *without = xmalloc(turns->nr_events * sizeof(*without));
	double values[TURNS_MOST + 1], mean = 0, squares = 0;
	size_t n = 0;
	int err = 0;

	memcpy(without, counts, turns->nr_events * sizeof(*without));
	for (size_t i = 0; i <= turns->nr && !err; i++) {
		if (!leave_out(turns, i, counts, events, nr, without))
			continue;
		err = estimate(what, without, &values[n]);
		mean += values[n++];
	}
	free(without);
	if (err || n < TURNS_LEAST)
		return 0;
	mean /= n;
	for (size_t i = 0; i < n; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	*error = sqrt(squares * (n - 1) / n);
	return n;
}

/* How much UNSEEN more occurrences would change the estimate: the sum over all events that were not counted
 * all the time. */
static double change_by_unseen(const struct turns *turns, const struct count *counts, const size_t *events,
			       size_t nr, estimate_fn estimate, const void *what, double value)
{
	struct count *more = xmalloc(turns->nr_events * sizeof(*more));
	double sum = 0, changed;

	memcpy(more, counts, turns->nr_events * sizeof(*more));
	for (size_t k = 0; k < nr; k++) {
		if (!count_is_estimate(&counts[events[k]]))
			continue;
		more[events[k]].value += UNSEEN;
		sum += estimate(what, more, &changed) ? INFINITY : fabs(changed - value);
		more[events[k]] = counts[events[k]];
	}
	free(more);
	return sum;
}

int bound_of(const struct turns *turns, const struct count *counts, const size_t *events, size_t nr,
	     estimate_fn estimate, const void *what, struct bound *bound)
{
	double value, error = 0, half;
	bool exact = true, known = true;

	if (estimate(what, counts, &value))
		return -1;
	*bound = (struct bound){value, value, 0};
	for (size_t k = 0; k < nr; k++) {
		bool estimated = count_is_estimate(&counts[events[k]]);

		exact = exact && !estimated;
		known = known && (!estimated || turns_of(turns, events[k]) >= TURNS_LEAST);
	}
	if (exact)
		return 0;
	bound->turns = known ? standard_error(turns, counts, events, nr, estimate, what, &error) : 0;
	half = bound->turns ? quantile(bound->turns - 1) * error +
				      change_by_unseen(turns, counts, events, nr, estimate, what, value)
			    : INFINITY;
	if (isnan(half))
		half = INFINITY;
	bound->low = value - half;
	bound->high = value + half;
	return 0;
}

static int scaled(const void *what, const struct count *counts, double *value)
{
	const struct count *count = &counts[*(const size_t *)what];

	if (!count->running_ns)
		return -1;
	*value = count_scaled(count);
	return 0;
}

void bound_of_count(const struct turns *turns, const struct count *counts, size_t event, struct bound *bound)
{
	if (bound_of(turns, counts, &event, 1, scaled, &event, bound))
		*bound = (struct bound){0, INFINITY, 0};
	if (bound->turns) {
		bound->low -= SWITCHING * count_scaled(&counts[event]);
		bound->high += SWITCHING * count_scaled(&counts[event]);
	}
	bound->low = fmax(bound->low, counts[event].value);
}
