/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * -r: each execution of the command counts other cells, as many as the core has off-core registers, from
 * beginning to end. Instructions are counted beside them; their spread tells whether the command repeats
 * itself.
 */
#ifndef NHMTAP_OFFCORE_EXECUTIONS_H
#define NHMTAP_OFFCORE_EXECUTIONS_H

#include <time.h>

#include "activity/activity.h"
#include "activity/tally.h"
#include "metric/moments.h"
#include "offcore/matrix.h"

struct executions {
	struct event *all; /* an event for each cell, then instructions; NULL: there is no -r */
	int nr_cells;
	int at_once; /* cells of an execution */
	int first;   /* the cell that this one begins with */
	/* Of each row of the tally: */
	struct repeated {
		struct moments *cells, *running, instructions;
	} * rows;
	size_t nr_rows;
	struct timespec began_at; /* CLOCK_REALTIME of the first */
	struct moments duration;
};

/* The number of -r N, or, of "auto", that of the executions that all cells take; 0 of NULL. Returns -1 with
 * the refusal. */
int executions_parse(const char *text, const struct matrix *matrix, const struct host *host, __u64 *repeats,
		     struct refusal *refusal);

/* Takes the plan's events over and leaves in the plan those of the first execution; those of the next. */
void executions_begin(struct executions *executions, struct plan *plan, const struct matrix *matrix,
		      const struct host *host);
void executions_next(struct executions *executions, struct plan *plan);
void executions_release(struct executions *executions);

/* Adds what an execution has counted. */
void executions_add(struct executions *executions, const struct activity *activity,
		    const struct tally *tally);

/* What a cell counted in an execution, by the mean of those that counted it; zero if none did. */
struct count executions_count(const struct executions *executions, size_t row, int cell);

/* Members of the record and of a cell. */
void executions_put(const struct executions *executions, size_t row, __u64 repeats, json_t *record);
void executions_put_spread(json_t *value, const struct moments *moments);

#endif
