// SPDX-License-Identifier: GPL-2.0-only
#include "analyze/account.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* No formula counts more than this number of occurrences in a cycle; bounds that are not known are infinite.
 */
#define RATE_MOST 64

/* What the parts of an explained share take together. */
struct causes {
	size_t of;   /* the share */
	double high; /* the sum of the most that each can take */
	double low;  /* the sum of the least that each takes */
	double serial;
	double doubt; /* how far `high` is from the share */
};

static const struct known_share unexplained = {
	.name = UNEXPLAINED,
	.description = "What no counted cause explains; negative if causes overlap",
	.meaning =
		"Causes without an event, such as chains of long operations, or a cost that is higher here",
	.source = "reasoning",
};

static size_t place_of(const struct account *account, const char *name)
{
	for (size_t i = 0; name && i < account->nr; i++)
		if (!strcmp(account->list[i].known->name, name))
			return i;
	return NOWHERE;
}

const struct accounted_share *account_find(const struct account *account, const char *name)
{
	size_t i = place_of(account, name);

	return i == NOWHERE ? NULL : &account->list[i];
}

/* Whether a share is among the parts of another, or of one of its parts. */
static bool is_within(const struct account *account, size_t i, size_t of)
{
	while (i != NOWHERE && i != of)
		i = place_of(account, account->list[i].known->parent);
	return i == of;
}

static double limit_to(double value, double low, double high)
{
	return fmin(fmax(value, low), high);
}

/* --- what is measured by itself --------------------------------------------------------------- */

static void withdraw(struct accounted_share *share, const char *why)
{
	share->there = false;
	snprintf(share->why, sizeof(share->why), "%s", why);
}

/* Takes a share as its formula gives it: bounds of an estimate may still be beyond the share it is part of.
 */
static void take_share(struct accounted_share *share, const struct measured_share *measured)
{
	const struct known_share *known = share->known;
	double low = limit_to(measured->low, -RATE_MOST, RATE_MOST);
	double high = limit_to(measured->high, -RATE_MOST, RATE_MOST);

	share->cost = measured->cost.samples ? measured->cost
					     : (struct cost_range){.low = known->cost_low,
								   .usual = known->cost,
								   .high = known->cost_high};
	if (!measured->there) {
		withdraw(share, measured->why);
		return;
	}
	share->there = true;
	share->serial = share->share = share->cost.usual * measured->value;
	share->low = low * (low < 0 ? share->cost.high : share->cost.low);
	share->high = high * (high < 0 ? share->cost.low : share->cost.high);
	share->most = fmax(share->high, 0);
	if (!known->estimated) {
		share->low = fmax(share->low, 0);
		share->high = fmin(share->high, 1);
		share->share = limit_to(share->share, share->low, share->high);
	}
}

/* --- estimates -------------------------------------------------------------------------------- */

/* Whether it is an estimate among the causes of share `of`: one with a formula, not a sum of others. */
static bool is_cause(const struct account *account, size_t i, size_t of)
{
	const struct known_share *known = account->list[i].known;

	return i != of && known->formula && !known->beside && is_within(account, i, of);
}

/* The most that a cause can take. One that is withdrawn can take everything. */
static double most_of(const struct account *account, const struct measured_share *measured, size_t i,
		      double whole)
{
	if (!account->list[i].there)
		return measured[i].none ? 0 : whole;
	return limit_to(account->list[i].high, 0, whole);
}

static struct causes causes_of(const struct account *account, const struct measured_share *measured,
			       size_t of)
{
	const struct accounted_share *share = &account->list[of];
	struct causes causes = {.of = of};

	for (size_t i = 0; i < account->nr; i++) {
		if (!is_cause(account, i, of))
			continue;
		causes.high += most_of(account, measured, i, share->high);
		causes.serial += account->list[i].serial;
	}
	causes.doubt = fmax(0, fmax(causes.high - share->low, share->high - causes.high));
	return causes;
}

/* Bounds a cause, or the sum of several. `low` and `high` are its bounds if nothing overlaps. */
static void limit(struct accounted_share *share, const struct causes *causes, double low, double high,
		  double whole)
{
	share->low = fmin(low, fmax(0, high - causes->doubt));
	share->high = fmin(high, whole);
	share->low = fmin(share->low, share->high);
	share->share = limit_to(share->serial, share->low, share->high);
}

static void limit_causes(struct account *account, const struct measured_share *measured,
			 struct causes *causes)
{
	double whole = account->list[causes->of].high;

	for (size_t i = 0; i < account->nr; i++) {
		struct accounted_share *share = &account->list[i];

		if (!is_cause(account, i, causes->of) || !share->there)
			continue;
		limit(share, causes, share->low, most_of(account, measured, i, whole), whole);
		causes->low += share->low;
	}
}

/* Sums up the causes that belong to a share which has no formula. `lows` has the lowest values of all causes
 * if nothing overlaps. */
static void sum_up(struct account *account, const struct measured_share *measured,
		   const struct causes *causes, const double *lows, size_t at)
{
	struct accounted_share *sum = &account->list[at];
	double whole = account->list[causes->of].high, low = 0, high = 0;

	for (size_t i = 0; i < account->nr; i++) {
		const struct accounted_share *share = &account->list[i];

		if (!is_cause(account, i, causes->of) || !is_within(account, i, at))
			continue;
		high += most_of(account, measured, i, whole);
		low += share->there ? lows[i] : 0;
		sum->serial += share->there ? share->serial : 0;
		sum->there = sum->there || share->there;
	}
	if (!sum->there)
		withdraw(sum, "none of its parts was measured");
	else
		limit(sum, causes, low, high, whole);
}

static void explain_share(struct account *account, const struct measured_share *measured, size_t of)
{
	struct accounted_share *share = &account->list[of], *rest = &account->list[account->nr - 1];
	struct causes causes = causes_of(account, measured, of);
	double *lows = xcalloc(account->nr, sizeof(*lows));

	for (size_t i = 0; i < account->nr; i++)
		lows[i] = account->list[i].low;
	limit_causes(account, measured, &causes);
	for (size_t i = 0; i < account->nr; i++)
		if (!account->list[i].known->formula && &account->list[i] != rest &&
		    is_within(account, i, of))
			sum_up(account, measured, &causes, lows, i);
	free(lows);
	rest->there = true;
	rest->share = rest->serial = share->share - causes.serial;
	rest->low = fmin(rest->share, share->low - causes.high);
	rest->high = fmax(rest->share, share->high - causes.low);
}

/* Withdraws all parts of an explained share that is not there itself. */
static void explain_nothing(struct account *account, size_t of)
{
	char why[200];

	snprintf(why, sizeof(why), "the share that it is part of, %s, was not measured",
		 account->list[of].known->name);
	withdraw(&account->list[account->nr - 1], why);
	for (size_t i = 0; i < account->nr; i++)
		if (i != of && is_within(account, i, of) && !account->list[i].why[0])
			withdraw(&account->list[i], why);
}

/* --- the verdict ------------------------------------------------------------------------------ */

static bool has_parts(const struct account *account, size_t i)
{
	for (size_t j = 0; j < account->nr; j++) {
		const struct known_share *known = account->list[j].known;

		if (known->parent && !known->beside && !strcmp(known->parent, account->list[i].known->name))
			return true;
	}
	return false;
}

bool account_is_leaf(const struct account *account, size_t i)
{
	return !account->list[i].known->beside && !has_parts(account, i);
}

/* The most that a share can be. One that is not there can be all that it is part of, unless it takes nothing.
 */
static double potential(const struct account *account, const struct measured_share *measured, size_t nr,
			size_t i)
{
	const struct accounted_share *share = &account->list[i];

	if (share->there)
		return share->high;
	if (i < nr && measured[i].none && share->known->estimated)
		return -INFINITY;
	for (size_t of = 0; of < account->nr; of++)
		if (account->list[of].known->explained && account->list[of].there &&
		    is_within(account, i, of))
			return account->list[of].high;
	return 1;
}

/* Rounding is no reason to leave a share out. */
#define ROUNDED 1e-9

#define HALVINGS 40

/* What the largest of the parts is at least, for all to add up to so much; 0 if they can't. */
static double largest_part(const struct judged_share *shares, size_t nr, double together)
{
	double least = 0, most = 1;

	for (int n = 0; n < HALVINGS; n++) {
		double at = (least + most) / 2, sum = 0;

		for (size_t i = 0; i < nr; i++)
			if (shares[i].part)
				sum += fmax(0, fmin(shares[i].most, at));
		if (sum < together)
			least = at;
		else
			most = at;
	}
	return most < 1 ? least : 0;
}

/* The largest share that is there, of those that can be so much; NOWHERE: none. */
static size_t largest_share(const struct judged_share *shares, size_t nr, double least)
{
	size_t found = NOWHERE;

	for (size_t i = 0; i < nr; i++)
		if (shares[i].leaf && shares[i].there && shares[i].most >= least &&
		    (found == NOWHERE || shares[i].share > shares[found].share))
			found = i;
	return found;
}

size_t account_judge(const struct judged_share *shares, size_t nr, double together, size_t *list)
{
	double least = largest_part(shares, nr, together) - ROUNDED;
	size_t first, found = 0;

	for (size_t i = 0; i < nr; i++)
		if (shares[i].leaf && shares[i].there)
			least = fmax(least, shares[i].low);
	first = largest_share(shares, nr, least);
	/* Those that may be the largest are not measured. */
	if (first == NOWHERE)
		first = largest_share(shares, nr, -INFINITY);
	if (first == NOWHERE)
		return 0;
	list[found++] = first;
	for (size_t i = 0; i < nr; i++)
		if (i != first && shares[i].leaf && shares[i].most >= least)
			list[found++] = i;
	return found;
}

static void judge_shares(struct account *account, const struct measured_share *measured, size_t nr)
{
	struct judged_share *shares = xcalloc(account->nr + 1, sizeof(*shares));
	size_t explained = NOWHERE;

	for (size_t i = 0; i < nr; i++)
		if (account->list[i].known->explained && account->list[i].there)
			explained = i;
	for (size_t i = 0; i < account->nr; i++) {
		const struct accounted_share *share = &account->list[i];
		bool leaf = account_is_leaf(account, i);

		shares[i] = (struct judged_share){.leaf = leaf,
						  .there = share->there,
						  .part = leaf && explained != NOWHERE &&
							  is_within(account, i, explained),
						  .share = share->share,
						  .low = share->low,
						  .most = potential(account, measured, nr, i)};
	}
	account->nr_verdict =
		account_judge(shares, account->nr, explained == NOWHERE ? 0 : account->list[explained].low,
			      account->verdict);
	free(shares);
}

/* --- the whole -------------------------------------------------------------------------------- */

void account_make(struct account *account, const struct known_share *known, size_t nr,
		  const struct measured_share *measured)
{
	size_t explained = NOWHERE;
	struct known_share *rest;

	*account = (struct account){.list = xcalloc(nr + 1, sizeof(*account->list)),
				    .nr = nr,
				    .verdict = xcalloc(nr + 1, sizeof(*account->verdict))};
	for (size_t i = 0; i < nr; i++) {
		account->list[i].known = &known[i];
		if (known[i].formula || known[i].of_time)
			take_share(&account->list[i], &measured[i]);
		if (known[i].explained)
			explained = i;
	}
	if (explained != NOWHERE) {
		rest = xcalloc(1, sizeof(*rest));
		*rest = unexplained;
		rest->parent = known[explained].name;
		rest->locate = known[explained].locate;
		account->list[account->nr++].known = rest;
		if (account->list[explained].there)
			explain_share(account, measured, explained);
		else
			explain_nothing(account, explained);
	}
	judge_shares(account, measured, nr);
}

void account_release(struct account *account)
{
	if (account->nr && !strcmp(account->list[account->nr - 1].known->name, UNEXPLAINED))
		free((void *)account->list[account->nr - 1].known);
	free(account->list);
	free(account->verdict);
	*account = (struct account){0};
}
