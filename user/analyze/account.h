/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the cycles go, with bounds. Pure.
 *
 * The parts of an explained share (stalled) are counts times a cost. These sums are what would be lost if
 * nothing overlapped, so they are too high where it does, and say nothing of what has no event. Two
 * assumptions bound each part, and it gets the wider of their bounds:
 *
 * - Nothing overlaps: it is the count times the lowest or the highest cost, but not more than the whole
 * share.
 * - All causes are counted: it is at least what all others leave, if each of them takes as much as it can. If
 * even all of them leave something, there are causes that are not counted, and they may take as much again
 * from any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tables/known_event.h"

#define UNEXPLAINED "unexplained"

/* A place in a list of shares, of one that it does not have. */
#define NOWHERE ((size_t)-1)

/* No tree of shares is deeper; in records of others, a share may be a part of itself. */
#define TREE_DEPTH_MOST 10

/* What one occurrence costs, in cycles, as measured. */
struct cost_range {
	double samples;	  /* 0: it was not measured */
	double throttled; /* how often the kernel paused what sampled them */
	double low, usual, high;
};

/* The value of a share's formula, as measured: in occurrences per unit of the whole. */
struct measured_share {
	bool there;
	bool none; /* it is not there, but takes nothing: the emulated machine does without */
	double value, low, high;
	struct cost_range cost; /* used instead of the table's */
	char why[400];		/* it is not there */
};

struct accounted_share {
	const struct known_share *known; /* of `unexplained`, one that no table has */
	bool there;
	double share, low, high; /* of the whole; share is within low and high, except for `unexplained` */
	double most;		 /* the count times the highest cost */
	double serial;		 /* the count times the usual cost: the share, if nothing overlapped */
	struct cost_range cost;	 /* the table's, if it was not measured */
	char why[400];		 /* it is not there */
};

struct account {
	struct accounted_share
		*list; /* as the table, and `unexplained` at the end, if a share is explained */
	size_t nr;
	size_t *verdict; /* the largest share without parts; then those that may be the largest, by the bounds
			  */
	size_t nr_verdict;
};

/* Accounts for all shares; `measured` has an element for each. Those of shares without a formula are ignored.
 * The caller must call account_release(). */
void account_make(struct account *account, const struct known_share *known, size_t nr,
		  const struct measured_share *measured);
void account_release(struct account *account);

/* What a verdict depends on. */
struct judged_share {
	bool leaf, there;
	bool part;	   /* a leaf of the share that is explained: these add up to it */
	double share, low; /* if it is there */
	double most;	   /* that it can be, also if it is not there */
};

/* Lists the largest share without parts, and then those that may be the largest: none that can't be as much
 * as another is at least, and none that is so small that the parts of the explained share, if none of them
 * were larger, could not add up to what that is at least (`together`; 0: nothing is explained). `list` has
 * room for all. Returns how many there are: 0 if no such share is there. */
size_t account_judge(const struct judged_share *shares, size_t nr, double together, size_t *list);

/* Whether a share has no parts, and is no other view of what shares have. */
bool account_is_leaf(const struct account *account, size_t i);

/* The share of this name; NULL if there is none. */
const struct accounted_share *account_find(const struct account *account, const char *name);
