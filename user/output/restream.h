/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes a stored stream of records again after some of its records have grown. A list that was cut into
 * parts is cut anew, so that no record exceeds RECORD_MAX, and the members that number records (seq, part,
 * parts, and `records` of the end record) are corrected. A stream may be a mix of several runs, line by line.
 */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "output/sink.h"

struct restream {
	struct sink *sink;
	/* Changes the elements of a record's list in place. Returns whether it changed any. `of` is the
	 * member below. */
	bool (*change)(void *of, const json_t *record, json_t *list);
	const char *(*list_of)(const json_t *record); /* the member that is its list; NULL: none */
	void *of;
	struct restreamed_run *runs; /* runs that have any state */
	size_t nr_runs;
};

/* Takes a record, which is consumed, and the line that it was read from, with its newline. A record that is
 * not changed is written as that line. Returns 0, or -errno of the sink. */
int restream_record(struct restream *restream, json_t *record, const char *line, size_t size);

/* Writes the records that still wait for further parts, unchanged. Returns 0, or -errno of the sink. */
int restream_end(struct restream *restream);
