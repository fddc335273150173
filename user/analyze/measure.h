/* SPDX-License-Identifier: GPL-2.0-only */
/* What was counted of a tree, as shares of the whole with bounds: by executions of a command, each of which
 * counts one group of events from beginning to end, or by turns within one run. */
#pragma once

#include "activity/activity.h"
#include "analyze/account.h"
#include "analyze/tree.h"
#include "metric/bound.h"
#include "metric/moments.h"

/* An event's count as a share of the whole, which is within `half` of the value. */
struct counted_ratio {
	bool there;
	double value, half;
};

/* The time in which nothing ran: `doubt` is how far it may be off. `elapsed` is 0 if it is not known. */
struct halted {
	double time, elapsed, doubt;
};

/* Either `ratios` or `counts` and `turns`. */
struct measured_run {
	const struct tree *tree;
	const struct counted_ratio *ratios; /* per event */
	const struct count *counts;	    /* per event, of one run */
	const struct turns *turns;	    /* the readings that they are the sums of */
	bool partial;			    /* a signal ended the run before all executions */
	const char *uncounted; /* why an event may not be there; NULL: as in a run of `activity` */
	const struct activity *activity;
	struct halted halted; /* of that run, or of all executions */
	double whole;	      /* the whole of a run, or of an execution on average; 0: not known */
};

/* Adds what an execution has counted: `counts` of all events, those of other groups with no time. */
void measure_add(const struct tree *tree, const struct count *counts, struct moments *ratios);

/* The shares of the whole by the executions that counted each event. The caller frees the list. */
struct counted_ratio *measure_ratios(const struct moments *ratios, size_t nr);

/* Why a share of stored records is not there. */
#define NOT_IN_RECORDS "in these records"

/* How often the event at a place of the tree's groups occurred in a run, or in an execution on average; 0:
 * not known. */
double measure_event(const struct measured_run *counted, size_t place);

/* Measures a share. */
void measure_share(const struct measured_run *counted, size_t share, struct measured_share *measured);

enum agreement { AGREES, DISAGREES, UNKNOWN };

/* Whether the two sides of an identity agree, as far as they are known. Sets the values of both, as shares of
 * the whole, unless it is UNKNOWN. */
enum agreement measure_identity(const struct measured_run *counted, size_t identity, double *left,
				double *right);

struct checked_identity {
	enum agreement agreement;
	double left, right;
};

/* Measures all shares, and withdraws those that depend on counts which disagree. Both lists have an element
 * for each share and each identity of the tree. */
void measure_all(const struct measured_run *counted, struct measured_share *measured,
		 struct checked_identity *checked);
