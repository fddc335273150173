/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the cells of a matrix gave, how far each can be off, and shares of them.
 *
 * Cells take turns on the register, so that each is seen for a small part of the time. Two things are
 * unknown of a cell: how unlike its turns were (metric/bound.h), and what it did in phases that fell
 * wholly between its turns. Of n turns, phases that take a share of the time up to 1 - 0.05^(1/n) go
 * unseen in one run of 20: in that share the cell may have had all that the sums around it had, or
 * nothing. A sum around it bounds it from above as well. With too few turns nothing is known.
 */
#ifndef NHMTAP_OFFCORE_CELLS_H
#define NHMTAP_OFFCORE_CELLS_H

#include <linux/types.h>

#include "metric/bound.h"
#include "metric/moments.h"
#include "offcore/matrix.h"

struct measured {
	const struct matrix_cell *cell;
	struct count count;
	struct bound bound;	    /* of the scaled count, if it ran */
	const struct moments *over; /* the executions in which it was counted; NULL: one */
};

/* What was read: the counts of the matrix's cells, in its order, and the time that it was read in. */
struct looks {
	const struct known_offcore *known; /* whose bits they are */
	const struct matrix *matrix;
	const struct count *counts;
	const struct turns *turns;  /* NULL: each cell was counted for the whole of some executions */
	__u64 interval_ns, turn_ns; /* turn_ns: the kernel's, of one event on a counter */
};

/* Fills in all cells of the matrix. */
void cells_measure(const struct looks *looks, struct measured *cells);

/*
 * The share of the lines with these bits (kind) in all of the matrix, and its bound. Returns 0; or -1
 * where there is none: unless the lines of the matrix are apart from each other and each wholly of one
 * kind, both kinds are asked for, and all of them have run. Of a line with unclear bits nobody knows
 * what it is. A bound of 0 turns that is no point is all that is possible: nothing is known.
 */
int cells_share(const struct looks *looks, __u64 kind, __u64 unclear, double *share, struct bound *bound);

#endif
