/* SPDX-License-Identifier: GPL-2.0-only */
/* A matrix of off-core requests: rows for kinds of requests, columns for responses, and a cell for each pair,
 * with its value of the off-core register (guide, Table 12). Pure. */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

#include "base/refusal.h"
#include "host/host.h"

#define MATRIX_PARTS 16 /* the most requests, and the most responses */
#define MATRIX_ALL   -1 /* in a cell: all of them, as one value */

/* offcore's own options; NULL if not given. */
struct offcore_options {
	const char *request, *response, *preset;
	const char *repeat; /* -r: "auto", or a number */
	const char *side;   /* "u" or "k"; NULL: both, as far as permissions allow */
};

struct matrix {
	struct matrix_part {
		char name[64]; /* the user's spelling */
		__u64 bits;
	} requests[MATRIX_PARTS], responses[MATRIX_PARTS];
	int nr_requests, nr_responses;
	/* In the order in which they are scheduled. Neighbours differ in both request and response, so that a
	 * part of a pass has measured every row and column. Sums are cells too, if one register value selects
	 * them. */
	struct matrix_cell {
		int request, response; /* indices, or MATRIX_ALL */
		__u64 bits;
	} cells[(MATRIX_PARTS + 1) * (MATRIX_PARTS + 1)];
	int nr_cells;
};

/* Makes the matrix of --request, --response and --preset. Returns 0, or -1 with the refusal. */
int matrix_make(struct matrix *matrix, const struct offcore_options *options, struct host *host,
		struct refusal *refusal);

/* Returns the cells as a list of events, in the order of the cells. Each is named REQUEST.RESPONSE. If
 * `instructions`, that event comes last. The caller frees the text. */
char *matrix_events(const struct matrix *matrix, const struct host *host, const char *modifiers,
		    bool instructions);

/* The name of a cell's request or response; "all" for MATRIX_ALL. */
const char *matrix_request(const struct matrix *matrix, const struct matrix_cell *cell);
const char *matrix_response(const struct matrix *matrix, const struct matrix_cell *cell);
