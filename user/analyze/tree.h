/* SPDX-License-Identifier: GPL-2.0-only */
/* The tree of a CPU's shares, made ready to be counted: its formulas, and the events of these in groups that
 * fit the counters. Every group has the events of the whole, so that each count is a share of the same
 * cycles. */
#pragma once

#include "analyze/account.h"
#include "base/count.h"
#include "base/refusal.h"
#include "host/host.h"
#include "metric/groups.h"
#include "tables/formula.h"

/* A formula, and for each of its inputs the group and the place in all events where it is counted. */
struct counted_formula {
	struct formula formula;
	size_t *places;
	int group; /* that has all inputs; -1: not known yet, or they are in several */
};

struct tree {
	const struct known_share *shares;
	size_t nr_shares;
	const struct known_identity *identities;
	size_t nr_identities;
	struct groups groups;
	size_t whole;			  /* the share that the others are shares of */
	struct counted_formula *formulas; /* per share; no inputs: it has none, or is not counted */
	struct counted_formula *wholes;	  /* per group: the whole by this group's events */
	struct counted_formula *sides;	  /* two per identity */
	char (*why)[200];		  /* per share: why it is not counted; "": it is */
	bool *none;			  /* per share: it is not counted because it takes nothing here */
};

/* Makes the tree of the host's CPU. Returns 0, or -1 with the refusal. The caller must call tree_release() in
 * either case. */
int tree_make(struct tree *tree, struct host *host, struct refusal *refusal);
void tree_release(struct tree *tree);

/* The first event of a group in the list of all, and how many it has. */
size_t tree_first(const struct tree *tree, size_t group);
size_t tree_size(const struct tree *tree, size_t group);

/* Computes the whole by the counts of a group. Returns 0, or -1 if it was not counted, or not all the time
 * unless `estimates` are allowed. */
int tree_whole(const struct tree *tree, size_t group, const struct count *counts, bool estimates,
	       double *value);

/* Computes an event's count as a share of the whole, by the counts of all events. Formulas are sums of events
 * times numbers, so they may be computed from such shares. Returns 0, or -1 if an event was not counted, or
 * not all the time unless `estimates` are allowed. */
int tree_event(const struct tree *tree, size_t place, const struct count *counts, bool estimates,
	       double *ratio);

/* Computes a formula as a share of the whole, from estimates too. Returns as tree_event(). */
int tree_ratio(const struct tree *tree, const struct counted_formula *counted, const struct count *counts,
	       double *ratio);

/* Writes the places of all events that tree_ratio() uses, each once. Returns how many. There
 * must be room for those of the formula, each with those of the whole. */
size_t tree_inputs(const struct tree *tree, const struct counted_formula *counted, size_t *places);
