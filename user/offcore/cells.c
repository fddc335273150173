// SPDX-License-Identifier: GPL-2.0-only
#include "offcore/cells.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "event/encoding.h"

/* --- phases between turns --------------------------------------------------------------------- */

#define MISSED 0.05 /* share of runs that may have a phase which no turn has seen */

/* The share of the time that a cell's turns may have missed. Threads that run at the same time have their
 * turns at the same time, so these count only once. */
static double unseen_share(const struct looks *looks, size_t cell)
{
	const struct count *count = &looks->counts[cell];
	double time = fmin(looks->interval_ns, count->enabled_ns), turns;

	if (!count->running_ns || !looks->turn_ns)
		return 1;
	turns = fmax(1, time * count->running_ns / count->enabled_ns / looks->turn_ns);
	return 1 - pow(MISSED, 1 / turns);
}

/* The highest rate (per ns) of a cell in any reading in which it ran for at least half a turn, and
 * overall. */
static double highest_pace(const struct looks *looks, size_t cell)
{
	const struct turns *turns = looks->turns;
	const struct count *count = &looks->counts[cell];
	double most = count->running_ns ? (double)count->value / count->running_ns : 0;

	for (size_t i = 0; i <= turns->nr; i++) {
		const struct count *one = &turns->list[i * turns->nr_events + cell];

		if (2 * one->running_ns >= looks->turn_ns)
			most = fmax(most, (double)one->value / one->running_ns);
	}
	return most;
}

static bool encloses(const struct matrix_cell *sum, const struct matrix_cell *cell)
{
	return !(cell->bits & ~sum->bits);
}

/* The highest rate that the cell can have had while it was not measured: that of the sums that include it. */
static double pace_around(const struct looks *looks, size_t cell)
{
	const struct matrix *matrix = looks->matrix;
	double most = 0;

	for (int i = 0; i < matrix->nr_cells; i++)
		if (encloses(&matrix->cells[i], &matrix->cells[cell]))
			most = fmax(most, highest_pace(looks, i));
	return most;
}

static void widen(const struct looks *looks, size_t cell, struct bound *bound)
{
	const struct count *count = &looks->counts[cell];
	double unseen = unseen_share(looks, cell), scaled = count_scaled(count);

	bound->low = fmax(bound->low - unseen * scaled, count->value);
	bound->high += unseen * pace_around(looks, cell) * count->enabled_ns;
}

/* --- cells ------------------------------------------------------------------------------------ */

/* Whether the sum was enabled at least as long as its part, except for the time between enabling the two:
 * otherwise its count leaves out some of the part's. */
static bool covers_part(const struct count *sum, const struct count *part)
{
	return sum->enabled_ns >= 0.99 * part->enabled_ns;
}

/* The readings alone: what happened between a cell's turns is limited by the sums that include it, which are
 * closer limits than what the core can do. */
static struct turns only_seen(const struct looks *looks)
{
	struct turns turns = *looks->turns;

	turns.paces = NULL;
	return turns;
}

void cells_measure(const struct looks *looks, struct measured_cells *cells)
{
	const struct matrix *matrix = looks->matrix;
	struct turns turns = looks->turns ? only_seen(looks) : (struct turns){0};

	for (int i = 0; i < matrix->nr_cells; i++) {
		struct measured_cells *cell = &cells[i];

		*cell = (struct measured_cells){.cell = &matrix->cells[i], .count = looks->counts[i]};
		if (looks->turns)
			bound_of_count(&turns, looks->counts, i, &cell->bound);
		else
			cell->bound = (struct bound){.low = cell->count.value, .high = INFINITY};
		if (cell->bound.turns)
			widen(looks, i, &cell->bound);
		else if (looks->turns)
			bound_of_count(looks->turns, looks->counts, i, &cell->bound);
	}
	/* A cell's upper bound is at most that of any cell that includes it. Only cells whose bounds come
	 * from readings are compared. */
	for (int i = 0; i < matrix->nr_cells; i++)
		for (int j = 0; j < matrix->nr_cells; j++) {
			struct measured_cells *part = &cells[i], *sum = &cells[j];

			if (!part->bound.turns || !sum->bound.turns || !encloses(sum->cell, part->cell) ||
			    !covers_part(&sum->count, &part->count))
				continue;
			part->bound.high = fmax(fmin(part->bound.high, sum->bound.high), part->bound.low);
		}
}

/* --- shares ----------------------------------------------------------------------------------- */

/* The lines from which a share is computed. */
struct cell_lines {
	const struct looks *looks;
	size_t whole[(MATRIX_PARTS + 1) * (MATRIX_PARTS + 1)];
	size_t nr;
	__u64 kind;
};

/* Whether the cell is a sum over the other axis, of which the share may consist: that of a row (all
 * responses) or of a column (all requests). */
static bool is_sum(const struct matrix *matrix, const struct matrix_cell *cell, bool of_requests)
{
	bool all_requests = cell->request == MATRIX_ALL || matrix->nr_requests == 1;
	bool all_responses = cell->response == MATRIX_ALL || matrix->nr_responses == 1;

	return of_requests ? all_responses && cell->request != MATRIX_ALL
			   : all_requests && cell->response != MATRIX_ALL;
}

/* Whether no request is counted in both lines. If responses consist of a supplier and a snoop, lines are
 * disjoint if they have no supplier or no snoop in common; a bit that is neither stands for any response. */
static bool apart(const struct known_offcore *known, __u64 a, __u64 b)
{
	__u64 suppliers = offcore_bits_of_kind(known, OFFCORE_SUPPLIER);
	__u64 snoops = offcore_bits_of_kind(known, OFFCORE_SNOOP);

	if (!snoops || !((a | b) & offcore_responses(known)))
		return !(a & b);
	if ((a | b) & ~(suppliers | snoops))
		return false;
	return !(a & b & suppliers) || !(a & b & snoops);
}

/* The bits of a kind together with those of its alternatives. */
static __u64 axis_of(const struct known_offcore *known, __u64 kind)
{
	static const unsigned int sides[] = {OFFCORE_SUPPLIER, OFFCORE_SNOOP};

	for (size_t i = 0; i < ARRAY_SIZE(sides); i++)
		if (kind & offcore_bits_of_kind(known, sides[i]))
			return offcore_bits_of_kind(known, sides[i]);
	return kind & offcore_requests(known) ? offcore_requests(known) : offcore_responses(known);
}

static bool find_lines(struct cell_lines *lines, __u64 unclear)
{
	const struct matrix *matrix = lines->looks->matrix;
	const struct known_offcore *known = lines->looks->known;
	bool of_requests = lines->kind & offcore_requests(known), inside = false, outside = false;
	__u64 line = of_requests ? offcore_requests(known) : offcore_responses(known);
	__u64 axis = axis_of(known, lines->kind);

	for (int i = 0; i < matrix->nr_cells; i++) {
		__u64 all = matrix->cells[i].bits & line, bits = all & axis;

		if (!is_sum(matrix, &matrix->cells[i], of_requests))
			continue;
		if (all & unclear || (bits & lines->kind && bits & ~lines->kind) ||
		    !lines->looks->counts[i].running_ns)
			return false;
		for (size_t j = 0; j < lines->nr; j++)
			if (!apart(known, matrix->cells[lines->whole[j]].bits & line, all))
				return false;
		inside |= (bits & lines->kind) != 0;
		outside |= !(bits & lines->kind);
		lines->whole[lines->nr++] = i;
	}
	return inside && outside;
}

static int share_of(const void *what, const struct count *counts, double *share)
{
	const struct cell_lines *lines = what;
	double part = 0, whole = 0;

	for (size_t i = 0; i < lines->nr; i++) {
		const struct count *count = &counts[lines->whole[i]];

		if (!count->running_ns)
			return -1;
		whole += count_scaled(count);
		part += lines->looks->matrix->cells[lines->whole[i]].bits & lines->kind ? count_scaled(count)
											: 0;
	}
	*share = part / whole;
	return whole > 0 ? 0 : -1;
}

int cells_share(const struct looks *looks, __u64 kind, __u64 unclear, double *share, struct bound *bound)
{
	struct cell_lines lines = {.looks = looks, .kind = kind};
	struct turns turns;
	double unseen = 0;
	bool exact = true;

	if (!find_lines(&lines, unclear) || share_of(&lines, looks->counts, share))
		return -1;
	for (size_t i = 0; i < lines.nr; i++)
		exact = exact && !count_is_estimate(&looks->counts[lines.whole[i]]);
	*bound = (struct bound){.low = exact ? *share : 0, .high = exact ? *share : 1};
	if (exact || !looks->turns)
		return 0;
	turns = only_seen(looks);
	if (bound_of(&turns, looks->counts, lines.whole, lines.nr, share_of, &lines, bound))
		return -1;
	for (size_t i = 0; i < lines.nr; i++)
		unseen = fmax(unseen, unseen_share(looks, lines.whole[i]));
	bound->low = bound->turns ? fmax(bound->low - unseen, 0) : 0;
	bound->high = bound->turns ? fmin(bound->high + unseen, 1) : 1;
	return 0;
}
