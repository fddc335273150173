/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads a stored stream of records for a command that shows it to people. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "base/refusal.h"

#define STORED_ERROR_ROOM 400

struct stored_reading {
	const char *writer;			      /* the command that writes such records, for refusals */
	void (*take)(void *of, const json_t *record); /* is called for each record, which is not kept; of
						       * single samples: see view/singles.h */
	void *of;
	bool cut;  /* is set if the last line is not whole: what comes before it has been taken */
	bool open; /* is set if a run has begun that has no end */
	char error[STORED_ERROR_ROOM]; /* is set to what the last error record says; "": there was none */
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
static inline const char *stored_early_end(bool open, bool cut)
{
	if (cut)
		return "the stream has no end, and its last line is not whole: it was cut, or is still being "
		       "written";
	return open ? "the stream has no end: it was cut, or is still being written" : "";
}

/* Says on stderr that the stream has no end, if so; `file` is NULL for stdin. */
void stored_tell_early_end(const struct stored_reading *reading, const char *file);

/* Ends a refusal: there is nothing in the records that could be shown, `what` for example "no stacks".
 * `error`: see struct stored_reading. Returns -1. */
int stored_has_no(const char *what, bool open, bool cut, const char *error, struct refusal *refusal);

/* The same of records that have neither counts nor samples. */
int stored_has_nothing(bool open, bool cut, const char *error, struct refusal *refusal);
