/* SPDX-License-Identifier: GPL-2.0-only */
/* What was counted of a tree, as shares of the whole with bounds: by executions of a command, each of which
 * counts one group of events from beginning to end, or by turns within one run. */
#ifndef NHMTAP_MEASURE_H
#define NHMTAP_MEASURE_H

#include "analyze/account.h"
#include "analyze/tree.h"
#include "metric/bound.h"
#include "metric/moments.h"

/* Either `ratios` or `counts` and `turns`. */
struct measured_run {
	const struct tree *tree;
	const struct moments
		*ratios; /* per event: its share of the whole, over the executions that counted it */
	const struct count *counts; /* per event, of one run */
	const struct turns *turns;  /* the readings that they are the sums of */
	bool partial;		    /* a signal ended the run before all executions */
	double whole;		    /* the whole of a run, or of an execution on average; 0: not known */
};

/* Adds what an execution has counted: `counts` of all events, those of other groups with no time. */
void measure_add(const struct tree *tree, const struct count *counts, struct moments *ratios);

/* How often an event occurred in a run, or in an execution on average; 0: not known. */
double measure_event(const struct measured_run *counted, const char *name);

/* Measures a share. */
void measure_share(const struct measured_run *counted, size_t share, struct measured_share *measured);

enum agreement { AGREES, DISAGREES, UNKNOWN };

/* Whether the two sides of an identity agree, as far as they are known. Sets the values of both, as shares of
 * the whole, unless it is UNKNOWN. */
enum agreement measure_identity(const struct measured_run *counted, size_t identity, double *left,
				double *right);

#endif
