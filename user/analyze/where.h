/* SPDX-License-Identifier: GPL-2.0-only */
/* Which code the largest shares of an account come from. For each, the target is run or watched again while
 * the command that the share names (its `locate`) samples it. */
#pragma once

#include <jansson.h>

#include "activity/activity.h"
#include "analyze/account.h"

/* A share below this is not worth another run. */
#define WHERE_LEAST 0.05

/* Entries of each share. */
#define WHERE_ENTRIES 5

/* How many shares are sampled, unless it is asked otherwise. */
#define WHERE_DEFAULT 3

/* How often things occur in a run, about; 0: nobody knows. */
struct occurrences {
	double whole;	/* cycles */
	double *shares; /* what is sampled for each of the account's shares */
};

/* The number of samples that are wanted of a run with so many cycles. */
double where_samples(double whole);

/* The share of this name in an analysis record; NULL if there is none. */
json_t *share_in(const json_t *record, const char *name);

/* Adds `sampled` and `where` to the shares of an analysis record, for at most `most` of the account's
 * shares. Appends annotation records of the function that has most of each to `annotations`, unless that is
 * NULL. */
void where_add(struct activity *activity, const struct account *account,
	       const struct occurrences *occurrences, __u64 most, json_t *record, json_t *annotations);
