// SPDX-License-Identifier: GPL-2.0-only
#include "metric/bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"

/* If something did not happen in a certain time, then with 95 % confidence it happens at most this number of
 * times in another period of the same length: -ln 0.05, the rule of three. */
#define UNSEEN 3

/* The times that the kernel measures do not exactly match those of the counter: switching a counter takes
 * time that is part of one but not of the other. The most seen, on the emulated Nehalem: 1.6 %. */
#define SWITCHING 0.02

/* The share of runs in which more may have gone unseen than is allowed for. */
#define MISSED 0.05

/* How much faster than its time stamp counter a core may run: turbo adds four fifths at most (a low-voltage
 * Sandy Bridge of 1.7 GHz reaches 3.0). */
#define TURBO 2

/* Blocks of up to this number of readings are taken for the standard error. */
#define BLOCK_MOST 8

/* More, if the event had no counter for a longer time, as long as there are so many blocks. */
#define BLOCKS_LEAST 3

/* --- readings --------------------------------------------------------------------------------- */

void turns_open(struct turns *turns, size_t nr_events, __u64 span_ns, __u64 turn_ns)
{
	*turns = (struct turns){
		.nr_events = nr_events, .first_ns = span_ns, .span_ns = span_ns, .turn_ns = turn_ns};
	turns->absences = xcalloc(nr_events, sizeof(*turns->absences));
	/* One more than TURNS_MOST: the one that is being filled. */
	turns->list = xcalloc((TURNS_MOST + 1) * nr_events, sizeof(*turns->list));
}

void turns_close(struct turns *turns)
{
	free(turns->list);
	free(turns->absences);
	*turns = (struct turns){0};
}

void turns_clear(struct turns *turns)
{
	turns->nr = 0;
	turns->last_ns = 0;
	turns->total_ns = 0;
	turns->span_ns = turns->first_ns;
	memset(turns->list, 0, turns->nr_events * sizeof(*turns->list));
	memset(turns->absences, 0, turns->nr_events * sizeof(*turns->absences));
}

static void halve_turns(struct turns *turns)
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

static void note_absence(struct absence *absence, const struct count *since)
{
	absence->now_ns += since->enabled_ns - since->running_ns;
	if (absence->now_ns > absence->longest_ns && !since->running_ns)
		absence->longest_ns = absence->now_ns;
	if (since->running_ns)
		absence->now_ns = 0;
}

void turns_add(struct turns *turns, const struct count *since, __u64 ns)
{
	struct count *last = &turns->list[turns->nr * turns->nr_events];

	for (size_t e = 0; e < turns->nr_events; e++) {
		count_add(&last[e], &since[e]);
		note_absence(&turns->absences[e], &since[e]);
	}
	turns->total_ns += ns;
	turns->last_ns += ns;
	if (turns->last_ns < turns->span_ns)
		return;
	turns->last_ns = 0;
	if (++turns->nr == TURNS_MOST)
		halve_turns(turns);
	memset(&turns->list[turns->nr * turns->nr_events], 0, turns->nr_events * sizeof(*since));
}

/* --- what the readings show ------------------------------------------------------------------- */

/* Student's t, 99 % two-sided: the quantile for the greatest number of degrees of freedom in the table that
 * is not above the given one. */
static double quantile(size_t freedom)
{
	static const struct {
		size_t freedom;
		double t;
	} quantiles[] = {
		{2, 9.925}, {3, 5.841},	 {4, 4.604},  {5, 4.032},  {6, 3.707},	{7, 3.499},  {8, 3.355},
		{9, 3.250}, {10, 3.169}, {12, 3.055}, {15, 2.947}, {20, 2.845}, {30, 2.750}, {60, 2.660},
	};
	size_t i = ARRAY_SIZE(quantiles) - 1;

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

/* Computes the counts without these readings, for those events that are estimates. Returns whether any of
 * them had a counter in them. */
static bool leave_out(const struct turns *turns, size_t first, size_t end, const struct count *counts,
		      const size_t *events, size_t nr, struct count *without)
{
	bool any = false;

	for (size_t k = 0; k < nr; k++) {
		struct count *left = &without[events[k]];

		*left = counts[events[k]];
		if (!count_is_estimate(left))
			continue;
		for (size_t i = first; i < end; i++) {
			const struct count *one = &turns->list[i * turns->nr_events + events[k]];

			any = any || one->running_ns;
			left->value -= one->value;
			left->running_ns -= one->running_ns;
		}
	}
	return any;
}

/* What a bound is computed of. */
struct bound_subject {
	const struct turns *turns;
	const struct count *counts;
	const size_t *events;
	size_t nr;
	estimate_fn estimate;
	const void *what;
	double value;
};

/* Computes the standard error by the jackknife over blocks of readings. Returns the number of blocks used, 0
 * if there are too few. */
static size_t standard_error(const struct bound_subject *s, size_t block, double *error)
{
	const struct turns *turns = s->turns;
	struct count *without = xmalloc(turns->nr_events * sizeof(*without));
	double values[TURNS_MOST + 1], mean = 0, squares = 0;
	size_t n = 0;
	int err = 0;

	memcpy(without, s->counts, turns->nr_events * sizeof(*without));
	for (size_t i = 0; i <= turns->nr && !err; i += block) {
		size_t end = i + block <= turns->nr ? i + block : turns->nr + 1;

		if (!leave_out(turns, i, end, s->counts, s->events, s->nr, without))
			continue;
		err = s->estimate(s->what, without, &values[n]);
		mean += values[n++];
	}
	free(without);
	if (err || n < BLOCKS_LEAST)
		return 0;
	mean /= n;
	for (size_t i = 0; i < n; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	*error = sqrt(squares * (n - 1) / n);
	return n;
}

/* The readings during which an event was absent at a time: what happens in these is not
 * independent. */
static double readings_of_absences(const struct bound_subject *s)
{
	double most = 0;

	for (size_t k = 0; k < s->nr; k++) {
		const struct count *count = &s->counts[s->events[k]];

		if (count_is_estimate(count))
			most = fmax(most, (double)s->turns->absences[s->events[k]].longest_ns *
						  (s->turns->nr + 1) / count->enabled_ns);
	}
	return most;
}

/* How far the estimate may be off by what the readings differ; infinite if they say nothing. Returns the
 * number of readings used, 0 if there are too few. */
static size_t spread_of(const struct bound_subject *s, double *off)
{
	double apart = readings_of_absences(s);
	size_t used = 0;

	*off = 0;
	for (size_t block = 1; block <= BLOCK_MOST || block < apart; block *= 2) {
		double error;
		size_t n = standard_error(s, block, &error);

		if (block == 1)
			used = n >= TURNS_LEAST ? n : 0;
		if (n < TURNS_LEAST && block >= apart)
			break;
		*off = n ? fmax(*off, quantile(n - 1) * error) : INFINITY;
		if (!n)
			break;
	}
	return used;
}

/* --- what was not seen ------------------------------------------------------------------------ */

/* Absences of an event in turns of the same length: the time of one, and that from one to the next. */
static void rhythm_of(const struct turns *turns, const struct count *count, double *absent, double *cycle)
{
	*cycle = turns->turn_ns * ((double)count->enabled_ns / count->running_ns);
	*absent = *cycle - turns->turn_ns;
}

static double absent_ns(const struct turns *turns, const struct count *counts, size_t event)
{
	double absent, cycle;

	if (!counts[event].running_ns)
		return counts[event].enabled_ns;
	rhythm_of(turns, &counts[event], &absent, &cycle);
	absent = fmin(absent, counts[event].enabled_ns - counts[event].running_ns);
	return fmax(absent, turns->absences[event].longest_ns);
}

/*
 * The most time that phases of the program can take which all fall into absences of the event, in 19 of 20
 * cases. A phase of the length b that begins at any time has this chance to do so: (absent - b) / cycle. So n
 * of them go unseen in one of 20 cases if that to the power of n is 0.05, and take n * b. The result is the
 * largest of these times over all b. It is about one cycle if there are three groups, and at most three.
 * Events of several CPUs have their absences at the same time, and so has each of these phases.
 */
static double unseen_ns(const struct turns *turns, const struct count *counts, size_t event)
{
	const struct count *count = &counts[event];
	double absent, cycle, most = 0, at_once = 1;
	const int steps = 200;

	rhythm_of(turns, count, &absent, &cycle);
	for (int i = 1; i < steps; i++) {
		double length = absent * i / steps, chance = (absent - length) / cycle;

		if (chance >= MISSED)
			most = fmax(most, length * log(MISSED) / log(chance));
	}
	if (turns->total_ns)
		at_once = fmax(1, (double)count->enabled_ns / turns->total_ns);
	return fmin(fmax(most * at_once, turns->absences[event].longest_ns),
		    count->enabled_ns - count->running_ns);
}

/* How far an estimate can be off, below and above it. */
struct margin {
	double below, above;
};

static void set_scaled(struct count *count, double scaled)
{
	count->value = llround(scaled * count->running_ns / count->enabled_ns);
}

/* Adds what the estimate changes by with another scaled count of this event. */
static void add_change(const struct bound_subject *s, size_t event, double scaled, struct margin *margin)
{
	struct count *changed = xmalloc(s->turns->nr_events * sizeof(*changed));
	double value;

	memcpy(changed, s->counts, s->turns->nr_events * sizeof(*changed));
	set_scaled(&changed[event], scaled);
	if (s->estimate(s->what, changed, &value) || isnan(value)) {
		margin->below = margin->above = INFINITY;
	} else {
		margin->below += fmax(s->value - value, 0);
		margin->above += fmax(value - s->value, 0);
	}
	free(changed);
}

/* What may have happened unseen: a few more occurrences, and phases in which the event had its highest pace,
 * or none. The rest of the time, it has the pace that was seen. */
static struct margin margin_of_unseen(const struct bound_subject *s)
{
	struct margin margin = {0};

	for (size_t k = 0; k < s->nr; k++) {
		const struct count *count = &s->counts[s->events[k]];
		double unseen, scaled, rest, most, few;

		if (!count_is_estimate(count))
			continue;
		scaled = count_scaled(count);
		few = UNSEEN * (double)count->enabled_ns / count->running_ns;
		unseen = s->turns->paces ? unseen_ns(s->turns, s->counts, s->events[k]) : 0;
		rest = scaled * (1 - unseen / count->enabled_ns);
		most = unseen ? rest + unseen * s->turns->paces[s->events[k]] : scaled;
		add_change(s, s->events[k], fmax(most, scaled) + few, &margin);
		add_change(s, s->events[k], fmax(rest - few, 0), &margin);
	}
	return margin;
}

/* --- bounds ----------------------------------------------------------------------------------- */

static int bound_by_readings(const struct turns *turns, const struct count *counts, const size_t *events,
			     size_t nr, estimate_fn estimate, const void *what, struct bound *bound)
{
	struct bound_subject s = {turns, counts, events, nr, estimate, what, 0};
	struct margin unseen = {0};
	double off = INFINITY, absent = 0;
	bool exact = true, known = true;

	if (estimate(what, counts, &s.value))
		return -1;
	*bound = (struct bound){.low = s.value, .high = s.value};
	for (size_t k = 0; k < nr; k++) {
		if (!count_is_estimate(&counts[events[k]]))
			continue;
		exact = false;
		known = known && turns_of(turns, events[k]) >= TURNS_LEAST;
		absent = fmax(absent, absent_ns(turns, counts, events[k]));
	}
	if (exact)
		return 0;
	bound->absent_ns = absent;
	bound->turns = known ? spread_of(&s, &off) : 0;
	if (!bound->turns || isnan(off))
		off = INFINITY;
	if (isfinite(off))
		unseen = margin_of_unseen(&s);
	/* The two errors are independent of each other. */
	bound->low -= hypot(off, unseen.below);
	bound->high += hypot(off, unseen.above);
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

/* The count if the event had the highest pace of which the core is capable in all the time that it had no
 * counter. This holds with any number of readings. */
static double count_at_most(const struct turns *turns, const struct count *count, size_t event)
{
	double unseen = count->enabled_ns - count->running_ns + SWITCHING * count->enabled_ns;

	return turns->paces ? count->value + unseen * TURBO * turns->paces[event] : INFINITY;
}

void bound_of_count(const struct turns *turns, const struct count *counts, size_t event, struct bound *bound)
{
	if (bound_by_readings(turns, counts, &event, 1, scaled, &event, bound))
		*bound = (struct bound){.high = INFINITY, .absent_ns = absent_ns(turns, counts, event)};
	if (bound->turns) {
		bound->low -= SWITCHING * count_scaled(&counts[event]);
		bound->high += SWITCHING * count_scaled(&counts[event]);
	}
	bound->low = fmax(bound->low, counts[event].value);
	if (count_is_estimate(&counts[event]))
		bound->high = fmin(bound->high, count_at_most(turns, &counts[event], event));
}

/* --- without enough readings ------------------------------------------------------------------ */

/* The estimate, times `sign`, if the scaled count of a member is this. */
static double with_member(const struct bound_subject *s, struct count *counts, size_t event, double scaled,
			  int sign)
{
	double value;

	set_scaled(&counts[event], scaled);
	return s->estimate(s->what, counts, &value) || isnan(value) ? INFINITY : sign * value;
}

/* Moves a member to that end of its bound where the estimate, times `sign`, is larger. Returns the estimate
 * there: infinite if the estimate is somewhere unknown, or does not lie between those of the two ends, as
 * if a divisor is 0 in between. */
static double move_member(const struct bound_subject *s, struct count *counts, size_t event,
			  const struct bound *own, int sign)
{
	double low = with_member(s, counts, event, own->low, sign);
	double middle = with_member(s, counts, event, (own->low + own->high) / 2, sign);
	double high = with_member(s, counts, event, own->high, sign);
	double rounding = 1e-9 * (fabs(low) + fabs(high));

	if (!isfinite(low) || !isfinite(high) || middle < fmin(low, high) - rounding ||
	    middle > fmax(low, high) + rounding)
		return INFINITY;
	set_scaled(&counts[event], high > low ? own->high : own->low);
	return fmax(low, high);
}

/* The largest estimate, times `sign`, with members within their own bounds. They are moved one after the
 * other, until this changes nothing. A quotient of sums, as metrics are, has its largest value there. */
static double extreme(const struct bound_subject *s, const struct bound *members, int sign)
{
	struct count *counts = xmalloc(s->turns->nr_events * sizeof(*counts));
	double most = -INFINITY, before;

	memcpy(counts, s->counts, s->turns->nr_events * sizeof(*counts));
	do {
		before = most;
		for (size_t k = 0; k < s->nr && most < INFINITY; k++)
			if (count_is_estimate(&s->counts[s->events[k]]))
				most = fmax(most, move_member(s, counts, s->events[k], &members[k], sign));
	} while (most > before && most < INFINITY);
	free(counts);
	return most;
}

/* Bounds an estimate by those of its members. */
static void bound_by_members(const struct bound_subject *s, struct bound *bound)
{
	struct bound *members = xcalloc(s->nr, sizeof(*members));
	bool known = true;

	for (size_t k = 0; k < s->nr; k++) {
		bound_of_count(s->turns, s->counts, s->events[k], &members[k]);
		known = known && isfinite(members[k].high);
	}
	if (known) {
		bound->low = -extreme(s, members, -1);
		bound->high = extreme(s, members, 1);
	}
	free(members);
}

int bound_of(const struct turns *turns, const struct count *counts, const size_t *events, size_t nr,
	     estimate_fn estimate, const void *what, struct bound *bound)
{
	struct bound_subject s = {turns, counts, events, nr, estimate, what, 0};

	if (bound_by_readings(turns, counts, events, nr, estimate, what, bound))
		return -1;
	if (!isfinite(bound->high))
		bound_by_members(&s, bound);
	return 0;
}
