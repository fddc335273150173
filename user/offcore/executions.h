/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * -r: each execution of the command counts different cells for its whole duration, as many as the core has
 * off-core registers. Instructions are counted as well; their spread shows whether the command behaves the
 * same each time.
 */
#pragma once

#include <time.h>

#include "activity/activity.h"
#include "activity/tally.h"
#include "metric/moments.h"
#include "offcore/matrix.h"

struct executions {
	struct event *all; /* an event per cell, then instructions; NULL: -r was not given */
	int nr_cells;
	int at_once; /* number of cells that an execution counts */
	int first;   /* index of the first cell of this execution */
	/* For each row of the tally: */
	struct repeated {
		struct moments *cells, *running, instructions;
	} * rows;
	size_t nr_rows;
	struct timespec began_at; /* CLOCK_REALTIME of the first execution */
	struct moments duration;
};

/* Parses the argument of -r. Sets `repeats` to N, for "auto" to the number of executions that all cells need,
 * and to 0 if `text` is NULL. Returns 0, or -1 with the refusal. */
int executions_parse(const char *text, const struct matrix *matrix, const struct host *host, __u64 *repeats,
		     struct refusal *refusal);

/* executions_begin() moves the plan's events to `executions` and leaves those of the first execution in the
 * plan. executions_next() puts those of the next execution there. */
void executions_begin(struct executions *executions, struct plan *plan, const struct matrix *matrix,
		      const struct host *host);
void executions_next(struct executions *executions, struct plan *plan);
void executions_release(struct executions *executions);

/* Adds the counts of an execution. */
void executions_add(struct executions *executions, const struct activity *activity,
		    const struct tally *tally);

/* The mean count of a cell over the executions that counted it; zero if none did. */
struct count executions_count(const struct executions *executions, size_t row, int cell);

/* Add members to the record, and to a cell. */
void executions_put(const struct executions *executions, size_t row, __u64 repeats, json_t *record);
void executions_put_spread(json_t *value, const struct moments *moments);
