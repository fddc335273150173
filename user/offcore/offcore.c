// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap offcore: requests that leave the core, by request and response. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "activity/activity.h"
#include "activity/missing.h"
#include "activity/start.h"
#include "activity/tally.h"
#include "activity/uncounted.h"
#include "activity/why.h"
#include "base/array.h"
#include "base/memory.h"
#include "event/encoding.h"
#include "offcore/cells.h"
#include "offcore/executions.h"
#include "option/command.h"
#include "record/bound.h"
#include "record/record.h"
#include "record/type.h"

#define LINE_BYTES 64

struct cells {
	struct matrix matrix;
	struct tally tally;
	struct executions executions; /* -r */
	struct uncounted uncounted;
	__u64 turn_ns; /* length of the kernel's turn for a cell on the register */
};

#define TURN_MS 4 /* PERF_CPU_HRTIMER, kernel/events/core.c: used if the driver does not say */

static __u64 turn_of(struct host *host)
{
	const struct pmu *pmu = host_core_pmu(host);

	return (pmu && pmu->mux_interval_ms > 0 ? pmu->mux_interval_ms : TURN_MS) * 1000000ULL;
}

static int check_repeats(const struct activity *activity, struct refusal *refusal)
{
	const struct options *options = activity->options;

	if (!options->repeats || (activity->session->command && !options->interval_ms))
		return 0;
	refuse(refusal, STATUS_USAGE, "option --repeat");
	because(refusal,
		options->interval_ms
			? "the matrix of several executions is reported once, and --interval asks for more"
			: "there is no COMMAND to run again");
	return instead(refusal, "nhmtap offcore -r auto -- COMMAND");
}

static int offcore_check(struct activity *activity, struct refusal *refusal)
{
	const struct offcore_options *own = activity->options->own;
	struct host *host = &activity->session->host;
	struct cells *offcore = xcalloc(1, sizeof(*offcore));

	activity->state = offcore;
	if (matrix_make(&offcore->matrix, own, host, refusal) ||
	    executions_parse(own->repeat, &offcore->matrix, host, &activity->options->repeats, refusal) ||
	    check_repeats(activity, refusal))
		return -1;
	if (activity->options->repeats)
		executions_begin(&offcore->executions, &activity->plan, &offcore->matrix, host);
	tally_begin(&offcore->tally, &activity->plan, host);
	offcore->turn_ns = turn_of(host);
	activity->drain_ns = activity->options->repeats ? 0 : offcore->tally.span_ns;
	return 0;
}

static json_t *parts_value(const struct matrix_part *parts, int nr)
{
	json_t *list = json_array();

	for (int i = 0; i < nr; i++)
		json_array_append_new(list, json_pack("{s:s, s:o}", "name", parts[i].name, "bits",
						      value_hex(parts[i].bits)));
	return list;
}

static void offcore_describe(struct activity *activity, json_t *start)
{
	const struct cells *offcore = activity->state;
	const struct pmu *pmu = host_core_pmu(&activity->session->host);

	json_object_set_new(start, "requests",
			    parts_value(offcore->matrix.requests, offcore->matrix.nr_requests));
	json_object_set_new(start, "responses",
			    parts_value(offcore->matrix.responses, offcore->matrix.nr_responses));
	if (activity->options->repeats) {
		json_t *events = json_array();

		for (int i = 0; i <= offcore->executions.nr_cells; i++)
			json_array_append_new(
				events, event_value(&offcore->executions.all[i], &activity->session->host));
		json_object_set_new(start, "events", events);
		json_object_set_new(start, "repeats", json_integer(activity->options->repeats));
		return;
	}
	/* The cells share the register in turns, one turn per multiplexing interval of the kernel. */
	if (pmu && pmu->mux_interval_ms > 0)
		json_object_set_new(
			start, "pass_ms",
			json_integer((json_int_t)pmu->mux_interval_ms * offcore->matrix.nr_cells));
}

/* --- cells ------------------------------------------------------------------------------------ */

static __u64 bits_of_kind(const struct activity *activity, unsigned int kinds)
{
	return offcore_bits_of_kind(activity->session->host.events->offcore, kinds);
}

/* With -r the plan has the cells of one execution only. All cells need the same register, so that the first
 * event stands for the others. */
static void put_why(const struct activity *activity, const struct measured_cells *measured, json_t *value)
{
	const struct cells *offcore = activity->state;
	__u64 repeats = activity->options->repeats, i = measured->cell - offcore->matrix.cells;
	char text[WHY_SIZE];
	const char *why =
		repeats && i >= repeats * offcore->executions.at_once
			? "no execution was left for it: -r auto runs COMMAND as often as all cells "
			  "need"
			: why_not_counted(activity, repeats ? 0 : i, &measured->count, text);

	json_object_set_new(value, "why", json_string(why));
}

static json_t *cell_value(const struct activity *activity, const struct measured_cells *measured)
{
	const struct cells *offcore = activity->state;
	const struct count *count = &measured->count;
	json_t *value = json_pack("{s:s, s:s, s:o, s:s, s:I, s:I, s:I}", "request",
				  matrix_request(&offcore->matrix, measured->cell), "response",
				  matrix_response(&offcore->matrix, measured->cell), "offcore_rsp",
				  value_hex(measured->cell->bits), "status", count_status(count), "value",
				  (json_int_t)count->value, "enabled_ns", (json_int_t)count->enabled_ns,
				  "running_ns", (json_int_t)count->running_ns);

	if (measured->over)
		executions_put_spread(value, measured->over);
	if (!count->running_ns) {
		put_why(activity, measured, value);
		return value;
	}
	json_object_set_new(value, "scaled", json_integer(llround(count_scaled(count))));
	if (count_is_estimate(count))
		json_object_set_new(value, "bound", bound_value(&measured->bound));
	if (!(measured->cell->bits & bits_of_kind(activity, OFFCORE_NO_LINE)))
		json_object_set_new(value, "bytes", json_integer(llround(count_scaled(count)) * LINE_BYTES));
	return value;
}

/* --- shares ----------------------------------------------------------------------------------- */

static void put_shares(const struct activity *activity, json_t *record, const struct looks *looks)
{
	static const struct {
		const char *name, *bound;
		unsigned int kind, unclear;
	} shares[] = {
		{"remote_share", "remote_share_bound", OFFCORE_REMOTE, OFFCORE_PARTLY_REMOTE},
		{"hitm_share", "hitm_share_bound", OFFCORE_HITM, 0},
		{"prefetch_share", "prefetch_share_bound", OFFCORE_PREFETCH, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		struct bound bound;
		double share;

		if (cells_share(looks, bits_of_kind(activity, shares[i].kind),
				bits_of_kind(activity, shares[i].unclear), &share, &bound))
			continue;
		json_object_set_new(record, shares[i].name, value_real(share));
		if (bound.low != bound.high)
			json_object_set_new(record, shares[i].bound, bound_value(&bound));
	}
}

/* --- records ---------------------------------------------------------------------------------- */

/* Finds a cell. (Records list the cells by rows, with sums last.) */
static const struct measured_cells *cell_at(const struct matrix *matrix, const struct measured_cells *cells,
					    int request, int response)
{
	for (int i = 0; i < matrix->nr_cells; i++)
		if (cells[i].cell->request == request && cells[i].cell->response == response)
			return &cells[i];
	return NULL;
}

static json_t *cells_value(const struct activity *activity, const struct measured_cells *cells)
{
	const struct matrix *matrix = &((const struct cells *)activity->state)->matrix;
	json_t *list = json_array();

	for (int row = 0; row <= matrix->nr_requests; row++)
		for (int column = 0; column <= matrix->nr_responses; column++) {
			const struct measured_cells *cell =
				cell_at(matrix, cells, row < matrix->nr_requests ? row : MATRIX_ALL,
					column < matrix->nr_responses ? column : MATRIX_ALL);

			if (cell)
				json_array_append_new(list, cell_value(activity, cell));
		}
	return list;
}

/* Writes the matrix of one row of the tally, for an interval or for all executions. */
static int write_matrix(struct activity *activity, size_t r, const struct looks *looks)
{
	struct cells *offcore = activity->state;
	const struct tally_row *row = &offcore->tally.rows[r];
	struct measured_cells *cells = xcalloc(offcore->matrix.nr_cells, sizeof(*cells));
	json_t *record = json_pack("{s:s}", "type", "offcore");
	bool repeated = activity->options->repeats;

	cells_measure(looks, cells);
	for (int i = 0; repeated && i < offcore->matrix.nr_cells; i++)
		cells[i].over = &offcore->executions.rows[r].cells[i];
	tally_put(record, &offcore->tally, row);
	if (repeated)
		executions_put(&offcore->executions, r,
			       activity->session->repeat - activity_partial(activity), record);
	else
		activity_put_interval(activity, record);
	activity_put_missing(activity, record, &row->cpus, row->key.cgroup);
	put_shares(activity, record, looks);
	json_object_set_new(record, "cells", cells_value(activity, cells));
	free(cells);
	return activity_write(activity, record);
}

static int offcore_drain(struct activity *activity)
{
	struct cells *offcore = activity->state;

	tally_look(&offcore->tally, activity->counters);
	activity->drain_ns = tally_pace(&offcore->tally, activity->drain_ns, activity->options->interval_ms);
	return 0;
}

static int offcore_report(struct activity *activity, bool last)
{
	struct cells *offcore = activity->state;
	int err = 0;

	tally_read(&offcore->tally, activity->counters, last);
	if (activity_cut(activity) || activity_partial(activity))
		tally_void(&offcore->tally);
	if (last)
		uncounted_note(&offcore->uncounted, activity, &offcore->tally);
	if (activity->options->repeats) {
		executions_add(&offcore->executions, activity, &offcore->tally);
		return 0;
	}
	activity->drain_ns = tally_pace(&offcore->tally, activity->drain_ns, activity->options->interval_ms);
	for (size_t r = 0; r < offcore->tally.nr && !err; r++) {
		const struct tally_row *row = &offcore->tally.rows[r];
		struct looks looks = {
			activity->session->host.events->offcore,
			&offcore->matrix,
			row->since,
			&row->interval_turns,
			activity_interval_ns(activity),
			offcore->turn_ns,
		};

		err = write_matrix(activity, r, &looks);
	}
	return err;
}

/* The next execution counts other cells, from 0. */
static void offcore_detach(struct activity *activity)
{
	struct cells *offcore = activity->state;

	if (!activity->options->repeats)
		return;
	tally_restart(&offcore->tally);
	executions_next(&offcore->executions, &activity->plan);
}

static int offcore_finish(struct activity *activity, json_t *end)
{
	struct cells *offcore = activity->state;
	struct count *counts;
	int err = 0;

	if (!offcore)
		return 0;
	uncounted_say(&offcore->uncounted, activity);
	if (!offcore->executions.nr_rows)
		return 0;
	counts = xcalloc(offcore->matrix.nr_cells, sizeof(*counts));
	for (size_t r = 0; r < offcore->executions.nr_rows && !err; r++) {
		struct looks looks = {.known = activity->session->host.events->offcore,
				      .matrix = &offcore->matrix,
				      .counts = counts};

		for (int i = 0; i < offcore->matrix.nr_cells; i++)
			counts[i] = executions_count(&offcore->executions, r, i);
		err = write_matrix(activity, r, &looks);
	}
	free(counts);
	return err;
}

static void offcore_release(struct activity *activity)
{
	struct cells *offcore = activity->state;

	if (!offcore)
		return;
	tally_release(&offcore->tally);
	executions_release(&offcore->executions);
	uncounted_release(&offcore->uncounted);
	free(offcore);
}

static int plan_offcore(struct plan *plan, const struct options *options, struct host *host,
			struct refusal *refusal)
{
	struct matrix matrix;
	const struct offcore_options *own = options->own;
	char *text;
	int err;

	if (target_plan(&plan->target, options, host, refusal) || matrix_make(&matrix, own, host, refusal))
		return -1;
	if (!host_core_pmu(host)) {
		refuse(refusal, STATUS_REFUSED, "off-core responses");
		because(refusal, "this machine exposes no hardware counters (is it a virtual machine?)");
		return instead(refusal,
			       "run it on the host itself, or with --machine on an emulated Nehalem");
	}
	text = matrix_events(&matrix, host, own->side ? own->side : "", own->repeat);
	err = events_parse(text, host, &plan->events, refusal);
	free(text);
	if (err)
		return -1;
	plan_common(plan, host);
	return plan_check(plan, options, host, refusal);
}

static const struct activity_ops ops = {
	.plan = plan_offcore,
	.check = offcore_check,
	.describe = offcore_describe,
	.attach = activity_attach_reader,
	.drain = offcore_drain,
	.report = offcore_report,
	.detach = offcore_detach,
	.finish = offcore_finish,
	.release = offcore_release,
};

static int choose(struct activity *activity, struct refusal *refusal)
{
	activity->ops = &ops;
	return 0;
}

static const struct activity_type type = {choose, .records = "offcore"};

static const struct record_type offcore_record = {
	.name = "offcore",
	.list = "cells",
	.kept = {"cpu", "node", "socket", "core", "tid", "comm", "cgroup", "start_time", "duration_ns",
		 "merged", "cpus_missing", "cgroups_missing", "cgroups_late", "repeated"},
};
REGISTER_RECORD(offcore_record);

/* --- the command ------------------------------------------------------------------------------ */

static const char *const sides[] = {"u", "k", NULL};

static const struct option_row rows[] = {
	{0, "preset", "NAME", OPTION_TEXT, OWN(struct offcore_options, preset), .again = AGAIN_REFUSED,
	 .help = "a predefined matrix: llc (the default), dram, numa, snoop, all"},
	{0, "request", "NAMES", OPTION_TEXT, OWN(struct offcore_options, request), .again = AGAIN_JOINS,
	 .help = "rows: requests separated by ','; those joined by '|' are counted as one"},
	{0, "response", "NAMES", OPTION_TEXT, OWN(struct offcore_options, response), .again = AGAIN_JOINS,
	 .help = "columns: responses, in the same form"},
	{0, "side", "u|k", OPTION_WORD, OWN(struct offcore_options, side), .words = sides,
	 .help = "only the user's side (u) or the kernel's (k)"},
	{'r', "repeat", "N|auto", OPTION_TEXT, OWN(struct offcore_options, repeat), .line_only = true,
	 .help = "run COMMAND N times, each time counting other cells for the whole of it; auto: until all "
		 "cells had their turn"},
	{0},
};

static const struct command offcore = {
	.name = "offcore",
	.arguments = "[OPTIONS] [-- COMMAND …]",
	.help = "counts requests that leave the core, by who asked and who answered",
	.options = {rows, target_rows, per_rows, interval_rows, stream_rows, format_rows, screen_rows,
		    plan_rows, table_rows, host_rows, machine_rows, help_rows},
	.own_size = sizeof(struct offcore_options),
	.activity = &type,
};
REGISTER_COMMAND(offcore);
