/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The counts of a matrix's cells, how far each can be off, and shares computed from them.
 *
 * Cells share the register in turns, so each is measured for a small part of the time. There are two
 * unknowns: how much a cell's turns differ from each other (metric/bound.h), and what happened in phases that
 * were entirely between its turns. With n turns, phases of up to a share of 1 - 0.05^(1/n) of the time remain
 * unseen in one of 20 runs. In that share of the time the cell may have counted as much as the sums that
 * include it, or nothing. A cell's upper bound is also limited by that of a sum that includes it. With too
 * few turns nothing is known.
 */
#pragma once

#include <linux/types.h>

#include "metric/bound.h"
#include "metric/moments.h"
#include "offcore/matrix.h"

struct measured_cells {
	const struct matrix_cell *cell;
	struct count count;
	struct bound bound;	    /* bound of the scaled count, if it ran */
	const struct moments *over; /* over the executions in which it was counted; NULL: there is only one */
};

/* The input: the counts of the matrix's cells, in the order of the cells, and the time in which they were
 * read. */
struct looks {
	const struct known_offcore *known; /* the table of the register's bits */
	const struct matrix *matrix;
	const struct count *counts;
	const struct turns *turns;  /* NULL: each cell was counted during whole executions */
	__u64 interval_ns, turn_ns; /* turn_ns: the length of the kernel's turn for one event on a counter */
};

/* Fills in all cells of the matrix, with their bounds. */
void cells_measure(const struct looks *looks, struct measured_cells *cells);

/*
 * Computes the share of the lines (rows or columns) with bits in `kind` of the whole matrix, and its bound.
 * Returns 0, or -1 if there is no such share. There is one if the lines don't overlap, each is either
 * entirely of this kind or not at all, both sorts are present, and all lines have run. A line with bits in
 * `unclear` can't be classified. If the bound has 0 turns and low differs from high, it is the widest
 * possible: nothing is known.
 */
int cells_share(const struct looks *looks, __u64 kind, __u64 unclear, double *share, struct bound *bound);
