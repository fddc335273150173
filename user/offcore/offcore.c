// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap offcore: requests that leave the core, by who asked and who answered. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "activity/activity.h"
#include "activity/tally.h"
#include "memory.h"
#include "offcore/matrix.h"
#include "option/command.h"
#include "record/record.h"
#include "record/type.h"

#define LINE_BYTES 64

struct cells {
	struct matrix matrix;
	struct tally tally;
};

/* What a cell gave in an interval. */
struct measured {
	const struct matrix_cell *cell;
	struct count count;
};

static int offcore_check(struct activity *activity, struct refusal *refusal)
{
	struct cells *offcore = xcalloc(1, sizeof(*offcore));

	activity->state = offcore;
	tally_begin(&offcore->tally, &activity->plan, &activity->session->host);
	return matrix_make(&offcore->matrix, activity->options->own, &activity->session->host, refusal);
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
	/* The cells take turns on the register, one an interval of the kernel's. */
	if (pmu && pmu->mux_interval_ms > 0)
		json_object_set_new(
			start, "pass_ms",
			json_integer((json_int_t)pmu->mux_interval_ms * offcore->matrix.nr_cells));
}

/* --- cells ------------------------------------------------------------------------------------ */

/* The bits of requests and responses that are of one of these kinds. */
static __u16 bits_of_kind(const struct activity *activity, unsigned int kinds)
{
	const struct known_offcore *known = activity->session->host.events->offcore;
	__u16 bits = 0;

	for (size_t i = 0; i < known->nr_requests; i++)
		bits |= known->requests[i].kinds & kinds ? known->requests[i].bits : 0;
	for (size_t i = 0; i < known->nr_responses; i++)
		bits |= known->responses[i].kinds & kinds ? known->responses[i].bits : 0;
	return bits;
}

static json_t *cell_value(const struct activity *activity, const struct measured *measured)
{
	const struct cells *offcore = activity->state;
	const struct count *count = &measured->count;
	json_t *value = json_pack("{s:s, s:s, s:o, s:s, s:I, s:I, s:I}", "request",
				  matrix_request(&offcore->matrix, measured->cell), "response",
				  matrix_response(&offcore->matrix, measured->cell), "offcore_rsp",
				  value_hex(measured->cell->bits), "status", count_status(count), "value",
				  (json_int_t)count->value, "enabled_ns", (json_int_t)count->enabled_ns,
				  "running_ns", (json_int_t)count->running_ns);

	if (!count->running_ns)
		return value;
	json_object_set_new(value, "scaled", json_integer(llround(count_scaled(count))));
	if (!(measured->cell->bits & bits_of_kind(activity, OFFCORE_NO_LINE)))
		json_object_set_new(value, "bytes", json_integer(llround(count_scaled(count)) * LINE_BYTES));
	return value;
}

/* --- shares ----------------------------------------------------------------------------------- */

/* Of the sums over the other axis, those that the share may be made of: a row's (all responses), or a
 * column's (all requests). */
static bool is_sum(const struct matrix *matrix, const struct matrix_cell *cell, bool of_requests)
{
	bool all_requests = cell->request == MATRIX_ALL || matrix->nr_requests == 1;
	bool all_responses = cell->response == MATRIX_ALL || matrix->nr_responses == 1;

	return of_requests ? all_responses && cell->request != MATRIX_ALL
			   : all_requests && cell->response != MATRIX_ALL;
}

/*
 * The share of the lines with these bits in all of the matrix. There is none (NULL) unless the lines of
 * the matrix are apart from each other and each wholly of one kind, both kinds are asked for, and all
 * of them have run. Of a line with unclear bits nobody knows what it is.
 */
static json_t *share_value(const struct matrix *matrix, const struct measured *cells, __u16 kind,
			   __u16 unclear)
{
	bool of_requests = kind & REQUEST_BITS;
	__u16 axis = of_requests ? REQUEST_BITS : RESPONSE_BITS, seen = 0, inside = 0;
	double part = 0, whole = 0;

	for (int i = 0; i < matrix->nr_cells; i++) {
		const struct measured *line = &cells[i];
		__u16 bits = line->cell->bits & axis;

		if (!is_sum(matrix, line->cell, of_requests))
			continue;
		if (bits & (seen | unclear) || (bits & kind && bits & ~kind) || !line->count.running_ns)
			return NULL;
		seen |= bits;
		whole += count_scaled(&line->count);
		if (bits & kind) {
			inside |= bits;
			part += count_scaled(&line->count);
		}
	}
	return inside && inside != seen && whole > 0 ? value_real(part / whole) : NULL;
}

static void put_shares(const struct activity *activity, json_t *record, const struct measured *cells)
{
	static const struct {
		const char *name;
		unsigned int kind, unclear;
	} shares[] = {
		{"remote_share", OFFCORE_REMOTE, OFFCORE_PARTLY_REMOTE},
		{"hitm_share", OFFCORE_HITM, 0},
		{"prefetch_share", OFFCORE_PREFETCH, 0},
	};
	const struct matrix *matrix = &((const struct cells *)activity->state)->matrix;

	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		json_t *share = share_value(matrix, cells, bits_of_kind(activity, shares[i].kind),
					    bits_of_kind(activity, shares[i].unclear));

		if (share)
			json_object_set_new(record, shares[i].name, share);
	}
}

/* --- records ---------------------------------------------------------------------------------- */

static void read_cells(const struct cells *offcore, const struct tally_row *row, struct measured *cells)
{
	for (int i = 0; i < offcore->matrix.nr_cells; i++)
		cells[i] = (struct measured){&offcore->matrix.cells[i], row->since[i]};
}

/* Rows first, as one reads a matrix; sums behind what they sum up. */
static const struct measured *cell_at(const struct matrix *matrix, const struct measured *cells, int request,
				      int response)
{
	for (int i = 0; i < matrix->nr_cells; i++)
		if (cells[i].cell->request == request && cells[i].cell->response == response)
			return &cells[i];
	return NULL;
}

static json_t *cells_value(const struct activity *activity, const struct measured *cells)
{
	const struct matrix *matrix = &((const struct cells *)activity->state)->matrix;
	json_t *list = json_array();

	for (int row = 0; row <= matrix->nr_requests; row++)
		for (int column = 0; column <= matrix->nr_responses; column++) {
			const struct measured *cell =
				cell_at(matrix, cells, row < matrix->nr_requests ? row : MATRIX_ALL,
					column < matrix->nr_responses ? column : MATRIX_ALL);

			if (cell)
				json_array_append_new(list, cell_value(activity, cell));
		}
	return list;
}

static int offcore_report(struct activity *activity, bool last)
{
	struct cells *offcore = activity->state;
	struct measured *cells = xcalloc(offcore->matrix.nr_cells, sizeof(*cells));
	int err = 0;

	tally_read(&offcore->tally, activity->counters);
	for (size_t r = 0; r < offcore->tally.nr && !err; r++) {
		const struct tally_row *row = &offcore->tally.rows[r];
		json_t *record = json_pack("{s:s}", "type", "offcore");

		read_cells(offcore, row, cells);
		tally_put(record, &offcore->tally, row);
		activity_put_interval(activity, record);
		activity_put_missing(activity, record, &row->cpus, row->key.cgroup);
		put_shares(activity, record, cells);
		json_object_set_new(record, "cells", cells_value(activity, cells));
		err = activity_write(activity, record);
	}
	free(cells);
	return err;
}

static void offcore_release(struct activity *activity)
{
	struct cells *offcore = activity->state;

	if (!offcore)
		return;
	tally_release(&offcore->tally);
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
		return instead(refusal, "run it on the host itself");
	}
	text = matrix_events(&matrix, host, own->side ? own->side : "");
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
	.report = offcore_report,
	.release = offcore_release,
};

static int choose(struct activity *activity, struct refusal *refusal)
{
	activity->ops = &ops;
	return 0;
}

static const struct activity_type type = {choose};

static const struct record_type offcore_record = {
	.name = "offcore",
	.list = "cells",
	.kept = {"cpu", "node", "socket", "core", "tid", "comm", "cgroup", "start_time", "duration_ns",
		 "cpus_missing", "cgroups_missing"},
};
REGISTER_RECORD(offcore_record);

/* --- the command ------------------------------------------------------------------------------ */

static const char *const sides[] = {"u", "k", NULL};

static const struct option_row rows[] = {
	{0, "preset", "NAME", OPTION_TEXT, OWN(struct offcore_options, preset),
	 .help = "a matrix that is asked for often: llc (the default), dram, numa, snoop, all"},
	{0, "request", "NAMES", OPTION_TEXT, OWN(struct offcore_options, request),
	 .help = "its rows: requests with ',' between them, those that count as one with '|'"},
	{0, "response", "NAMES", OPTION_TEXT, OWN(struct offcore_options, response),
	 .help = "its columns: responses, likewise"},
	{0, "side", "u|k", OPTION_WORD, OWN(struct offcore_options, side), .words = sides,
	 .help = "only the user's side, or only the kernel's"},
	{0},
};

static const struct command offcore = {
	.name = "offcore",
	.arguments = "[OPTIONS] [-- COMMAND …]",
	.help = "counts requests that leave the core, by who asked and who answered",
	.options = {rows, target_rows, per_rows, interval_rows, output_rows, format_rows, plan_rows,
		    table_rows, host_rows, help_rows},
	.own_size = sizeof(struct offcore_options),
	.activity = &type,
};
REGISTER_COMMAND(offcore);
