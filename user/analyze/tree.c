// SPDX-License-Identifier: GPL-2.0-only
#include "analyze/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static int parse_formula(struct counted_formula *counted, const char *text, struct refusal *refusal)
{
	char why[128];

	counted->group = -1;
	if (!formula_parse(&counted->formula, text, why, sizeof(why))) {
		counted->places = xcalloc(counted->formula.nr_inputs + 1, sizeof(*counted->places));
		return 0;
	}
	refuse(refusal, STATUS_USAGE, "formula '%.200s'", text);
	return because(refusal, "it %s", why);
}

static void release_formula(struct counted_formula *counted)
{
	formula_release(&counted->formula);
	free(counted->places);
}

/* --- what is counted here --------------------------------------------------------------------- */

static bool counts_kernel(const struct known_share *share)
{
	return strstr(share->formula, ":k");
}

static void leave_out(struct tree *tree, size_t i, const struct host *host)
{
	const struct known_share *share = &tree->shares[i];

	if (share->unmodelled && host->emulated.model[0]) {
		tree->none[i] = true;
		snprintf(tree->why[i], sizeof(tree->why[i]),
			 "the emulated machine does not count all of its events");
	} else if (counts_kernel(share) && !host_may_count_kernel(host)) {
		snprintf(
			tree->why[i], sizeof(tree->why[i]),
			"the kernel may not be counted: perf_event_paranoid is %d and CAP_PERFMON is missing",
			host->perf_event_paranoid);
	}
}

/* --- groups ----------------------------------------------------------------------------------- */

/* The group that has an event already; -1: none has. */
static int group_of(const struct tree *tree, const char *name)
{
	for (size_t g = 0; g < tree->groups.nr; g++)
		for (size_t i = 0; i < tree->groups.list[g].nr; i++)
			if (!strcmp(tree->groups.list[g].names[i], name))
				return g;
	return -1;
}

/* Adds events beside those of the whole. If they do not fit the counters together, each is counted where
 * there is room. Returns their group, -1 if they are in several, or -2 with the refusal. */
static int add_names(struct tree *tree, char *const *names, size_t nr, struct host *host,
		     struct refusal *refusal)
{
	const struct formula *whole = &tree->formulas[tree->whole].formula;
	char *all[whole->nr_inputs + nr];
	int fit, group;

	memcpy(all, whole->inputs, whole->nr_inputs * sizeof(*all));
	memcpy(all + whole->nr_inputs, names, nr * sizeof(*all));
	fit = groups_fit(all, whole->nr_inputs + nr, host, refusal);
	if (fit < 0)
		return -2;
	if (fit || nr < 2) {
		group = groups_add(&tree->groups, all, whole->nr_inputs + nr, host, refusal);
		return group < 0 ? -2 : group;
	}
	for (size_t i = 0; i < nr; i++)
		if (group_of(tree, names[i]) < 0 && add_names(tree, &names[i], 1, host, refusal) < 0)
			return -2;
	return -1;
}

static int add_share(struct tree *tree, size_t i, struct host *host, struct refusal *refusal)
{
	struct counted_formula *counted = &tree->formulas[i];

	counted->group = add_names(tree, counted->formula.inputs, counted->formula.nr_inputs, host, refusal);
	return counted->group < -1 ? -1 : 0;
}

static int add_identity(struct tree *tree, size_t identity, struct host *host, struct refusal *refusal)
{
	struct counted_formula *left = &tree->sides[2 * identity], *right = left + 1;
	size_t nr = left->formula.nr_inputs + right->formula.nr_inputs;
	char *names[nr + 1];

	memcpy(names, left->formula.inputs, left->formula.nr_inputs * sizeof(*names));
	memcpy(names + left->formula.nr_inputs, right->formula.inputs,
	       right->formula.nr_inputs * sizeof(*names));
	left->group = right->group = add_names(tree, names, nr, host, refusal);
	return left->group < -1 ? -1 : 0;
}

static void find_places(const struct tree *tree, struct counted_formula *counted)
{
	for (size_t i = 0; i < counted->formula.nr_inputs; i++) {
		const char *name = counted->formula.inputs[i];
		int group = counted->group >= 0 ? counted->group : group_of(tree, name);

		counted->places[i] = groups_place(&tree->groups, group, name);
	}
}

/* --- the tree --------------------------------------------------------------------------------- */

static int parse_all(struct tree *tree, const struct host *host, struct refusal *refusal)
{
	for (size_t i = 0; i < tree->nr_shares; i++) {
		if (!tree->shares[i].parent)
			tree->whole = i;
		if (!tree->shares[i].formula)
			continue;
		leave_out(tree, i, host);
		if (!tree->why[i][0] && parse_formula(&tree->formulas[i], tree->shares[i].formula, refusal))
			return -1;
	}
	for (size_t i = 0; i < tree->nr_identities; i++)
		if (parse_formula(&tree->sides[2 * i], tree->identities[i].left, refusal) ||
		    parse_formula(&tree->sides[2 * i + 1], tree->identities[i].right, refusal))
			return -1;
	return 0;
}

static int add_all(struct tree *tree, struct host *host, struct refusal *refusal)
{
	for (size_t i = 0; i < tree->nr_shares; i++)
		if (tree->formulas[i].formula.nr_inputs && add_share(tree, i, host, refusal))
			return -1;
	for (size_t i = 0; i < tree->nr_identities; i++)
		if (add_identity(tree, i, host, refusal))
			return -1;
	return 0;
}

static int place_all(struct tree *tree, struct refusal *refusal)
{
	for (size_t i = 0; i < tree->nr_shares; i++)
		find_places(tree, &tree->formulas[i]);
	for (size_t i = 0; i < 2 * tree->nr_identities; i++)
		find_places(tree, &tree->sides[i]);
	tree->wholes = xcalloc(tree->groups.nr + 1, sizeof(*tree->wholes));
	for (size_t g = 0; g < tree->groups.nr; g++) {
		if (parse_formula(&tree->wholes[g], tree->shares[tree->whole].formula, refusal))
			return -1;
		tree->wholes[g].group = g;
		find_places(tree, &tree->wholes[g]);
	}
	return 0;
}

int tree_make(struct tree *tree, struct host *host, struct refusal *refusal)
{
	const struct cpu_events *cpu = host->events;

	*tree = (struct tree){.shares = cpu->shares,
			      .nr_shares = cpu->nr_shares,
			      .identities = cpu->identities,
			      .nr_identities = cpu->nr_identities};
	tree->formulas = xcalloc(tree->nr_shares + 1, sizeof(*tree->formulas));
	tree->sides = xcalloc(2 * tree->nr_identities + 1, sizeof(*tree->sides));
	tree->why = xcalloc(tree->nr_shares + 1, sizeof(*tree->why));
	tree->none = xcalloc(tree->nr_shares + 1, sizeof(*tree->none));
	return parse_all(tree, host, refusal) || add_all(tree, host, refusal) || place_all(tree, refusal) ? -1
													  : 0;
}

void tree_release(struct tree *tree)
{
	for (size_t i = 0; tree->formulas && i < tree->nr_shares; i++)
		release_formula(&tree->formulas[i]);
	for (size_t i = 0; tree->sides && i < 2 * tree->nr_identities; i++)
		release_formula(&tree->sides[i]);
	for (size_t g = 0; tree->wholes && g < tree->groups.nr; g++)
		release_formula(&tree->wholes[g]);
	free(tree->formulas);
	free(tree->sides);
	free(tree->wholes);
	free(tree->why);
	free(tree->none);
	groups_release(&tree->groups);
	*tree = (struct tree){0};
}

size_t tree_size(const struct tree *tree, size_t group)
{
	return tree->groups.list[group].nr;
}

size_t tree_first(const struct tree *tree, size_t group)
{
	size_t first = 0;

	for (size_t g = 0; g < group; g++)
		first += tree_size(tree, g);
	return first;
}

/* --- values ----------------------------------------------------------------------------------- */

static size_t group_at(const struct tree *tree, size_t place)
{
	size_t group = 0;

	while (place >= tree_size(tree, group))
		place -= tree_size(tree, group++);
	return group;
}

/* Takes the count of an event. Returns 0, or -1 if it was not counted, or not all the time though it must be.
 */
static int take_count(const struct count *count, bool estimates, double *value)
{
	if (!count->running_ns || (count_is_estimate(count) && !estimates))
		return -1;
	*value = count_scaled(count);
	return 0;
}

int tree_whole(const struct tree *tree, size_t group, const struct count *counts, bool estimates,
	       double *value)
{
	const struct counted_formula *whole = &tree->wholes[group];
	double inputs[whole->formula.nr_inputs + 1];
	char why[128];

	for (size_t i = 0; i < whole->formula.nr_inputs; i++)
		if (take_count(&counts[whole->places[i]], estimates, &inputs[i]))
			return -1;
	return formula_value(&whole->formula, inputs, value, why, sizeof(why)) || *value <= 0 ? -1 : 0;
}

int tree_event(const struct tree *tree, size_t place, const struct count *counts, bool estimates,
	       double *ratio)
{
	double whole;

	if (tree_whole(tree, group_at(tree, place), counts, estimates, &whole) ||
	    take_count(&counts[place], estimates, ratio))
		return -1;
	*ratio /= whole;
	return 0;
}

int tree_ratio(const struct tree *tree, const struct counted_formula *counted, const struct count *counts,
	       double *ratio)
{
	double inputs[counted->formula.nr_inputs + 1];
	char why[128];

	for (size_t i = 0; i < counted->formula.nr_inputs; i++)
		if (tree_event(tree, counted->places[i], counts, true, &inputs[i]))
			return -1;
	return formula_value(&counted->formula, inputs, ratio, why, sizeof(why));
}

static void add_place(size_t *places, size_t *nr, size_t place)
{
	for (size_t i = 0; i < *nr; i++)
		if (places[i] == place)
			return;
	places[(*nr)++] = place;
}

size_t tree_inputs(const struct tree *tree, const struct counted_formula *counted, size_t *places)
{
	size_t nr = 0;

	for (size_t i = 0; i < counted->formula.nr_inputs; i++) {
		const struct counted_formula *whole = &tree->wholes[group_at(tree, counted->places[i])];

		add_place(places, &nr, counted->places[i]);
		for (size_t w = 0; w < whole->formula.nr_inputs; w++)
			add_place(places, &nr, whole->places[w]);
	}
	return nr;
}
