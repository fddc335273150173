// SPDX-License-Identifier: GPL-2.0-only
#include "analyze/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "activity/why.h"
#include "base/array.h"
#include "base/list.h"
#include "base/memory.h"

void measure_add(const struct tree *tree, const struct count *counts, struct moments *ratios)
{
	size_t place = 0;

	for (size_t g = 0; g < tree->groups.nr; g++)
		for (size_t i = 0; i < tree_size(tree, g); i++, place++) {
			double ratio;

			if (!tree_event(tree, place, counts, false, &ratio))
				moments_add(&ratios[place], ratio);
		}
}

/* --- executions ------------------------------------------------------------------------------- */

/* Student's t, 95 % two-sided, by degrees of freedom. */
static double quantile_of(__u64 freedom)
{
	static const double quantiles[] = {INFINITY, 12.71, 4.31, 3.19, 2.78, 2.58,
					   2.45,     2.37,  2.31, 2.27, 2.23};

	return freedom < ARRAY_SIZE(quantiles) ? quantiles[freedom] : 2.23;
}

/* Half of the interval in which the mean of more executions would be. */
static double half_of(const struct moments *moments)
{
	return moments->n < 2 ? INFINITY
			      : quantile_of(moments->n - 1) * sqrt(moments_variance(moments) / moments->n);
}

struct counted_ratio *measure_ratios(const struct moments *ratios, size_t nr)
{
	struct counted_ratio *list = xcalloc(nr + 1, sizeof(*list));

	for (size_t i = 0; ratios && i < nr; i++)
		list[i] = (struct counted_ratio){ratios[i].n, ratios[i].mean, half_of(&ratios[i])};
	return list;
}

/* Adds how far the formula moves if an input is as far off as it can be. */
static double moved(const struct counted_formula *counted, double *inputs, size_t i, double half,
		    double value)
{
	double kept = inputs[i], other;
	char why[128];

	inputs[i] = kept + half;
	if (!isfinite(half) || formula_value(&counted->formula, inputs, &other, why, sizeof(why)))
		other = INFINITY;
	inputs[i] = kept;
	return fabs(other - value);
}

static int by_ratios(const struct measured_run *counted, const struct counted_formula *formula, double *value,
		     struct bound *bound)
{
	double inputs[formula->formula.nr_inputs + 1], half = 0;
	char why[128];

	for (size_t i = 0; i < formula->formula.nr_inputs; i++) {
		if (!counted->ratios[formula->places[i]].there)
			return -1;
		inputs[i] = counted->ratios[formula->places[i]].value;
	}
	if (formula_value(&formula->formula, inputs, value, why, sizeof(why)))
		return -1;
	for (size_t i = 0; i < formula->formula.nr_inputs; i++)
		half += moved(formula, inputs, i, counted->ratios[formula->places[i]].half, *value);
	*bound = (struct bound){.low = *value - half, .high = *value + half};
	return 0;
}

/* --- turns ------------------------------------------------------------------------------------ */

struct estimated_ratio {
	const struct tree *tree;
	const struct counted_formula *formula;
};

static int estimate_ratio(const void *what, const struct count *counts, double *value)
{
	const struct estimated_ratio *estimated = what;

	return tree_ratio(estimated->tree, estimated->formula, counts, value);
}

static int by_turns(const struct measured_run *counted, const struct counted_formula *formula, double *value,
		    struct bound *bound)
{
	struct estimated_ratio estimated = {counted->tree, formula};
	size_t whole = counted->tree->wholes[0].formula.nr_inputs;
	size_t *places = xcalloc(formula->formula.nr_inputs * (1 + whole) + 1, sizeof(*places));
	size_t nr = tree_inputs(counted->tree, formula, places);
	int err = tree_ratio(counted->tree, formula, counted->counts, value) ||
		  bound_of(counted->turns, counted->counts, places, nr, estimate_ratio, &estimated, bound);

	free(places);
	return err;
}

/* --- shares and identities -------------------------------------------------------------------- */

static int measure_formula(const struct measured_run *counted, const struct counted_formula *formula,
			   double *value, struct bound *bound)
{
	return counted->ratios ? by_ratios(counted, formula, value, bound)
			       : by_turns(counted, formula, value, bound);
}

double measure_event(const struct measured_run *counted, size_t place)
{
	double ratio;

	if (counted->ratios)
		return counted->ratios[place].there ? counted->whole * counted->ratios[place].value : 0;
	return tree_event(counted->tree, place, counted->counts, true, &ratio) ? 0 : counted->whole * ratio;
}

static void measure_halted(const struct measured_run *counted, struct measured_share *measured)
{
	const struct halted *halted = &counted->halted;

	measured->there = halted->elapsed > 0;
	if (!measured->there) {
		snprintf(measured->why, sizeof(measured->why), "the time is not known %s",
			 counted->uncounted ? counted->uncounted : "of cgroups");
		return;
	}
	measured->value = halted->time / halted->elapsed;
	measured->low = (halted->time - halted->doubt) / halted->elapsed;
	measured->high = (halted->time + halted->doubt) / halted->elapsed;
}

/* Says which event was not counted, and who may have held the counters in the only run. */
static void say_uncounted(const struct measured_run *counted, const struct counted_formula *formula,
			  struct measured_share *measured)
{
	size_t input = formula->formula.nr_inputs - 1;
	const char *why = NULL;
	char text[WHY_SIZE];

	for (size_t i = 0; counted->counts && i < formula->formula.nr_inputs && !why; i++) {
		size_t place = formula->places[i];

		why = why_not_counted(counted->activity, place, &counted->counts[place], text);
		input = why ? i : input;
	}
	snprintf(measured->why, sizeof(measured->why), "%s was not counted%s %.300s",
		 formula->formula.inputs[input], why ? ":" : "",
		 why		      ? why
		 : counted->uncounted ? counted->uncounted
		 : counted->partial   ? "before a signal ended the run"
				    : "all the time: no counter was free for it, or the target did not run");
}

void measure_share(const struct measured_run *counted, size_t share, struct measured_share *measured)
{
	const struct tree *tree = counted->tree;
	const struct counted_formula *formula = &tree->formulas[share];
	struct bound bound = {0};

	*measured = (struct measured_share){.none = tree->none[share]};
	if (tree->shares[share].of_time) {
		measure_halted(counted, measured);
		return;
	}
	if (!formula->formula.nr_inputs) {
		snprintf(measured->why, sizeof(measured->why), "%s", tree->why[share]);
		return;
	}
	measured->there = !measure_formula(counted, formula, &measured->value, &bound);
	/* What is counted is never negative. A difference may be, by chance. */
	measured->low = fmax(bound.low, fmin(measured->value, 0));
	measured->high = bound.high;
	if (!measured->there)
		say_uncounted(counted, formula, measured);
}

enum agreement measure_identity(const struct measured_run *counted, size_t identity, double *left,
				double *right)
{
	const struct counted_formula *sides = &counted->tree->sides[2 * identity];
	const struct known_identity *known = &counted->tree->identities[identity];
	double allowed = known->percent / 100.0;
	struct bound bounds[2];

	if (measure_formula(counted, &sides[0], left, &bounds[0]) ||
	    measure_formula(counted, &sides[1], right, &bounds[1]))
		return UNKNOWN;
	allowed *= fmax(fabs(*left), fabs(*right));
	return (known->left_may_be_more || bounds[0].low - allowed <= bounds[1].high) &&
			       bounds[1].low - allowed <= bounds[0].high
		       ? AGREES
		       : DISAGREES;
}

/* --- all of it -------------------------------------------------------------------------------- */

static const struct known_share *share_named(const struct tree *tree, const char *name)
{
	const struct known_share *share = tree->shares, *end = share + tree->nr_shares;

	while (name && share && share < end && strcmp(share->name, name))
		share++;
	return name && share < end ? share : NULL;
}

static bool is_part_of(const struct tree *tree, const struct known_share *share, const char *name)
{
	while (share && strcmp(share->name, name))
		share = share_named(tree, share->parent);
	return share;
}

/* Withdraws the shares that depend on counts which contradict each other, and their parts. */
static void withdraw_by(const struct tree *tree, size_t identity, struct measured_share *measured)
{
	const char *names = tree->identities[identity].withdraws;
	char name[64];
	size_t length;

	for (const char *at = NULL; (at = list_next(names, at, &length));) {
		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		for (size_t i = 0; i < tree->nr_shares; i++) {
			if (!is_part_of(tree, &tree->shares[i], name))
				continue;
			measured[i].there = measured[i].none = false;
			snprintf(measured[i].why, sizeof(measured[i].why),
				 "counts that must agree do not: %s", tree->identities[identity].name);
		}
	}
}

void measure_all(const struct measured_run *counted, struct measured_share *measured,
		 struct checked_identity *checked)
{
	const struct tree *tree = counted->tree;

	for (size_t i = 0; i < tree->nr_shares; i++)
		measure_share(counted, i, &measured[i]);
	for (size_t i = 0; i < tree->nr_identities; i++) {
		checked[i].agreement = measure_identity(counted, i, &checked[i].left, &checked[i].right);
		if (checked[i].agreement == DISAGREES)
			withdraw_by(tree, i, measured);
	}
}
