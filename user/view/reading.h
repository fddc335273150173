/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads a stored stream of records for a command that shows it to people. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "base/refusal.h"

/* Where a stream ends. */
struct stored_end {
	bool cut;	 /* its last line is not whole: what comes before it has been taken */
	bool open;	 /* a run has begun that has no end */
	char error[400]; /* what the last error record says; "": there was none */
};

struct stored_reading {
	const char *writer;			      /* the command that writes such records, for refusals */
	void (*take)(void *of, const json_t *record); /* is called for each record, which is not kept; of
						       * single samples: see view/singles.h */
	void *of;
	struct stored_end end; /* is set when the stream has been read */
};

/*
 * Reads all records of a file (NULL or "-": stdin), and shows progress. Refuses what would be shown wrongly:
 * lines that are no records, records of a later schema, and records that are not in the order in which they
 * were written. Blank lines are nothing. A last line without a newline may be cut anywhere. Returns 0, or -1
 * with the refusal.
 */
int read_stored(struct stored_reading *reading, const char *file, struct refusal *refusal);

/* Refuses an output (NULL: stdout) that is one of the files (none: stdin) whose records are read: it would be
 * empty, or what was measured would be lost. Returns 0, or -1 with the refusal. */
int check_not_read(const char *output, char *const *files, int nr, struct refusal *refusal);

/* In words, as a constant, that a stream was cut in a line or has no end; "" if it is whole. */
const char *stored_early_end(const struct stored_end *end);

/* Says on stderr that the stream has no end, if so; `file` is NULL for stdin. */
void stored_tell_early_end(const struct stored_end *end, const char *file);

/* Ends a refusal: there is nothing in the records that could be shown, `what` for example "no stacks".
 * Returns -1. */
int stored_has_no(const char *what, const struct stored_end *end, struct refusal *refusal);

/* The same of records that have neither counts nor samples. */
int stored_has_nothing(const struct stored_end *end, struct refusal *refusal);
