// SPDX-License-Identifier: GPL-2.0-only
#include "offcore/executions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "event/encoding.h"
#include "record/record.h"

#define REPEATS_MOST 1000000

static int registers_of_core(const struct host *host)
{
	return (int)extra_registers_of(host->events, EXTRA_OFFCORE);
}

int executions_parse(const char *text, const struct matrix *matrix, const struct host *host, __u64 *repeats,
		     struct refusal *refusal)
{
	int at_once = registers_of_core(host);

	*repeats = 0;
	if (!text)
		return 0;
	if (!strcmp(text, "auto")) {
		*repeats = (matrix->nr_cells + at_once - 1) / at_once;
		return 0;
	}
	if (number_whole(text, repeats) && *repeats && *repeats <= REPEATS_MOST)
		return 0;
	refuse(refusal, STATUS_USAGE, "option --repeat '%.60s'", text);
	because(refusal, "it is no number from 1 to %d, and not auto", REPEATS_MOST);
	return instead(refusal, "-r auto runs COMMAND as often as all cells need");
}

/* --- what an execution counts ----------------------------------------------------------------- */

static void choose_cells(struct executions *executions, struct plan *plan)
{
	for (int i = 0; i < executions->at_once; i++)
		plan->events.list[i] = executions->all[(executions->first + i) % executions->nr_cells];
	plan->events.list[executions->at_once] = executions->all[executions->nr_cells];
	plan->events.nr = executions->at_once + 1;
}

void executions_begin(struct executions *executions, struct plan *plan, const struct matrix *matrix,
		      const struct host *host)
{
	int at_once = registers_of_core(host);

	executions->nr_cells = matrix->nr_cells;
	executions->at_once = at_once < matrix->nr_cells ? at_once : matrix->nr_cells;
	executions->all = xcalloc(plan->events.nr, sizeof(*executions->all));
	memcpy(executions->all, plan->events.list, plan->events.nr * sizeof(*executions->all));
	choose_cells(executions, plan);
}

/* If the last of the executions has room for more cells than are left, it counts the first cells again. */
void executions_next(struct executions *executions, struct plan *plan)
{
	executions->first += executions->at_once;
	if (executions->first >= executions->nr_cells)
		executions->first = 0;
	choose_cells(executions, plan);
}

void executions_release(struct executions *executions)
{
	for (size_t r = 0; r < executions->nr_rows; r++) {
		free(executions->rows[r].cells);
		free(executions->rows[r].running);
	}
	free(executions->rows);
	free(executions->all);
	*executions = (struct executions){0};
}

/* --- what they counted ------------------------------------------------------------------------ */

static void add_row(struct executions *executions, struct repeated *repeated, const struct tally_row *row)
{
	const struct count *instructions = &row->now[executions->at_once];

	for (int i = 0; i < executions->at_once; i++) {
		int cell = (executions->first + i) % executions->nr_cells;

		if (!row->now[i].running_ns)
			continue;
		moments_add(&repeated->cells[cell], count_scaled(&row->now[i]));
		moments_add(&repeated->running[cell],
			    (double)row->now[i].running_ns / row->now[i].enabled_ns);
	}
	if (instructions->running_ns)
		moments_add(&repeated->instructions, count_scaled(instructions));
}

void executions_add(struct executions *executions, const struct activity *activity, const struct tally *tally)
{
	if (!executions->duration.n)
		executions->began_at = activity->interval_began_at;
	moments_add(&executions->duration, activity_interval_ns(activity));
	executions->rows = xrealloc(executions->rows, tally->nr * sizeof(*executions->rows));
	for (; executions->nr_rows < tally->nr; executions->nr_rows++)
		executions->rows[executions->nr_rows] = (struct repeated){
			xcalloc(executions->nr_cells, sizeof(struct moments)),
			xcalloc(executions->nr_cells, sizeof(struct moments)),
			{0},
		};
	for (size_t r = 0; r < tally->nr; r++)
		add_row(executions, &executions->rows[r], &tally->rows[r]);
}

struct count executions_count(const struct executions *executions, size_t row, int cell)
{
	const struct repeated *repeated = &executions->rows[row];
	__u64 time = llround(executions->duration.mean);

	if (!repeated->cells[cell].n)
		return (struct count){0};
	return (struct count){
		.value = llround(repeated->cells[cell].mean * repeated->running[cell].mean),
		.enabled_ns = time,
		.running_ns = repeated->running[cell].least < 1 ? time * repeated->running[cell].mean : time,
	};
}

/* --- records ---------------------------------------------------------------------------------- */

void executions_put_spread(json_t *value, const struct moments *moments)
{
	json_object_set_new(value, "executions", json_integer(moments->n));
	if (!moments->n)
		return;
	json_object_set_new(value, "min", value_real(moments->least));
	json_object_set_new(value, "max", value_real(moments->most));
	if (moments->n > 1)
		json_object_set_new(value, "stddev", value_real(sqrt(moments_variance(moments))));
}

void executions_put(const struct executions *executions, size_t row, __u64 repeats, json_t *record)
{
	const struct moments *instructions = &executions->rows[row].instructions;
	json_t *repeated = json_pack("{s:I, s:i}", "executions", (json_int_t)repeats, "cells_at_once",
				     executions->at_once);
	char start[TIME_TEXT];

	if (instructions->n) {
		json_t *spread = json_pack("{s:o}", "mean", value_real(instructions->mean));

		executions_put_spread(spread, instructions);
		json_object_set_new(repeated, "instructions", spread);
	}
	json_object_set_new(record, "start_time", json_string(time_text(&executions->began_at, start)));
	json_object_set_new(record, "duration_ns", json_integer(llround(executions->duration.mean)));
	json_object_set_new(record, "repeated", repeated);
}
