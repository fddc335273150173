// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap offcore: requests that leave the core, by who asked and who answered. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "plan/matrix.h"
#include "record/record.h"
#include "run/run.h"
#include "run/tally.h"

#define LINE_BYTES 64

struct offcore {
	struct matrix matrix;
	struct tally tally;
};

/* What a cell gave in an interval. */
struct measured {
	const struct matrix_cell *cell;
	struct count count;
};

static int offcore_check(struct run *run, struct refusal *refusal)
{
	struct offcore *offcore = calloc(1, sizeof(*offcore));

	run->state = offcore;
	tally_begin(&offcore->tally, &run->plan, &run->host);
	return matrix_make(&offcore->matrix, run->options, &run->host, refusal);
}

static json_t *parts_value(const struct matrix_part *parts, int nr)
{
	json_t *list = json_array();

	for (int i = 0; i < nr; i++)
		json_array_append_new(list, json_pack("{s:s, s:o}", "name", parts[i].name, "bits",
						      value_hex(parts[i].bits)));
	return list;
}

static void offcore_describe(struct run *run, json_t *start)
{
	const struct offcore *offcore = run->state;
	const struct pmu *pmu = host_core_pmu(&run->host);

	json_object_set_new(start, "requests", parts_value(offcore->matrix.requests,
							   offcore->matrix.nr_requests));
	json_object_set_new(start, "responses", parts_value(offcore->matrix.responses,
							    offcore->matrix.nr_responses));
	/* The cells take turns on the register, one an interval of the kernel's. */
	if (pmu && pmu->mux_interval_ms > 0)
		json_object_set_new(start, "pass_ms",
				    json_integer((json_int_t)pmu->mux_interval_ms *
						 offcore->matrix.nr_cells));
}

/* --- cells ------------------------------------------------------------------------------------ */

static const char *status_of(const struct count *count)
{
	if (!count->running_ns)
		return "not_counted";
	return count->running_ns < count->enabled_ns ? "multiplexed" : "counted";
}

static double scaled(const struct count *count)
{
	return (double)count->value * count->enabled_ns / count->running_ns;
}

/* Whether each request brings or takes a line: all but those of other kinds, and those to devices. */
static bool moves_lines(const struct run *run, __u16 bits)
{
	const struct known_offcore *known = run->host.events->offcore;
	__u16 others = 0;

	for (size_t i = 0; i < known->nr_requests; i++)
		if (!strcmp(known->requests[i].name, "OTHER"))
			others |= known->requests[i].bits;
	for (size_t i = 0; i < known->nr_responses; i++)
		if (!strcmp(known->responses[i].name, "IO_CSR_MMIO"))
			others |= known->responses[i].bits;
	return !(bits & others);
}

static json_t *cell_value(const struct run *run, const struct measured *measured)
{
	const struct offcore *offcore = run->state;
	const struct count *count = &measured->count;
	json_t *value = json_pack("{s:s, s:s, s:o, s:s, s:I, s:I, s:I}", "request",
				  matrix_request(&offcore->matrix, measured->cell), "response",
				  matrix_response(&offcore->matrix, measured->cell), "offcore_rsp",
				  value_hex(measured->cell->bits), "status", status_of(count), "value",
				  (json_int_t)count->value, "enabled_ns", (json_int_t)count->enabled_ns,
				  "running_ns", (json_int_t)count->running_ns);

	if (!count->running_ns)
		return value;
	json_object_set_new(value, "scaled", json_integer(llround(scaled(count))));
	if (moves_lines(run, measured->cell->bits))
		json_object_set_new(value, "bytes",
				    json_integer(llround(scaled(count)) * LINE_BYTES));
	return value;
}

/* --- shares ----------------------------------------------------------------------------------- */

/* Bits of the guide's Table 12. */
#define HITM_BITS     0x0c00 /* OTHER_CORE_HITM, REMOTE_CACHE_HITM */
#define REMOTE_BITS   0x3800 /* REMOTE_CACHE_HITM, REMOTE_CACHE_FWD, REMOTE_DRAM */
#define PREFETCH_BITS 0x0070 /* PF_DATA_RD, PF_RFO, PF_IFETCH */

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
 * of them have run.
 */
static json_t *share_value(const struct matrix *matrix, const struct measured *cells, __u16 kind)
{
	bool of_requests = kind & REQUEST_BITS;
	__u16 axis = of_requests ? REQUEST_BITS : RESPONSE_BITS, seen = 0, inside = 0;
	double part = 0, whole = 0;

	for (int i = 0; i < matrix->nr_cells; i++) {
		const struct measured *line = &cells[i];
		__u16 bits = line->cell->bits & axis;

		if (!is_sum(matrix, line->cell, of_requests))
			continue;
		if (bits & seen || (bits & kind && bits & ~kind) || !line->count.running_ns)
			return NULL;
		seen |= bits;
		whole += scaled(&line->count);
		if (bits & kind) {
			inside |= bits;
			part += scaled(&line->count);
		}
	}
	return inside && inside != seen && whole > 0 ? value_real(part / whole) : NULL;
}

static void put_shares(json_t *record, const struct matrix *matrix, const struct measured *cells)
{
	static const struct {
		const char *name;
		__u16 bits;
	} shares[] = {
		{"remote_share", REMOTE_BITS},
		{"hitm_share", HITM_BITS},
		{"prefetch_share", PREFETCH_BITS},
	};

	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		json_t *share = share_value(matrix, cells, shares[i].bits);

		if (share)
			json_object_set_new(record, shares[i].name, share);
	}
}

/* --- records ---------------------------------------------------------------------------------- */

static void read_cells(const struct offcore *offcore, const struct tally_row *row,
		       struct measured *cells)
{
	for (int i = 0; i < offcore->matrix.nr_cells; i++)
		cells[i] = (struct measured){&offcore->matrix.cells[i], row->since[i]};
}

/* Rows first, as one reads a matrix; sums behind what they sum up. */
static const struct measured *cell_at(const struct matrix *matrix, const struct measured *cells,
				      int request, int response)
{
	for (int i = 0; i < matrix->nr_cells; i++)
		if (cells[i].cell->request == request && cells[i].cell->response == response)
			return &cells[i];
	return NULL;
}

static json_t *cells_value(const struct run *run, const struct measured *cells)
{
	const struct matrix *matrix = &((const struct offcore *)run->state)->matrix;
	json_t *list = json_array();

	for (int row = 0; row <= matrix->nr_requests; row++)
		for (int column = 0; column <= matrix->nr_responses; column++) {
			const struct measured *cell =
				cell_at(matrix, cells, row < matrix->nr_requests ? row : MATRIX_ALL,
					column < matrix->nr_responses ? column : MATRIX_ALL);

			if (cell)
				json_array_append_new(list, cell_value(run, cell));
		}
	return list;
}

static int offcore_report(struct run *run, bool last)
{
	static const char *const kept[] = {"type", "cpu", "node", "socket", "core", "tid", "comm", "cgroup",
					   "start_time", "duration_ns", "cpus_missing", NULL};
	struct offcore *offcore = run->state;
	struct measured *cells = calloc(offcore->matrix.nr_cells, sizeof(*cells));
	int err = 0;

	tally_read(&offcore->tally, run->counters);
	for (size_t r = 0; r < offcore->tally.nr && !err; r++) {
		const struct tally_row *row = &offcore->tally.rows[r];
		json_t *record = json_pack("{s:s}", "type", "offcore");

		read_cells(offcore, row, cells);
		tally_put(record, &offcore->tally, row);
		run_put_interval(run, record);
		run_put_missing(run, record, &row->cpus);
		put_shares(record, &offcore->matrix, cells);
		json_object_set_new(record, "cells", cells_value(run, cells));
		err = stream_write(&run->stream, record, "cells", kept);
	}
	free(cells);
	return err;
}

static void offcore_release(struct run *run)
{
	struct offcore *offcore = run->state;

	if (!offcore)
		return;
	tally_release(&offcore->tally);
	free(offcore);
}

int command_offcore(const struct options *options, struct refusal *refusal)
{
	static const struct activity activity = {
		.command = "offcore",
		.plan = plan_offcore,
		.check = offcore_check,
		.describe = offcore_describe,
		.report = offcore_report,
		.release = offcore_release,
	};

	return run_activity(&activity, options, refusal);
}
