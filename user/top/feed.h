/* SPDX-License-Identifier: GPL-2.0-only */
/* Where nhmtap top gets its records from: another process of nhmtap, which measures and writes them into a
 * FIFO, or stdin. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <jansson.h>

#include "base/refusal.h"
#include "option/options.h"
#include "record/stored_lines.h"

struct feed {
	pid_t pid;	   /* of the process that measures; 0: there is none, or it has ended */
	int status;	   /* how it ended, as of waitpid(2) */
	int records, said; /* to be read: records, and what it and COMMAND write for people; -1: ended */
	struct stored_lines lines;
	char folder[64]; /* "" once it is removed */
};

/* What is measured: an activity or CONFIG with its arguments, or what runs hot. */
struct feed_wanted {
	const struct options *options; /* target, events and interval */
	const char *record;	       /* file that the records are written to as well; NULL: none */
	char **words;		       /* ACTIVITY and its arguments, or COMMAND */
	int nr_words;
	bool activity;	      /* the words are an activity and its arguments */
	const json_t *config; /* CONFIG, of which the words are the COMMAND; NULL: what runs hot */
};

/* Starts measuring. Returns 0, or -1 with the refusal. */
int feed_start(struct feed *feed, const struct feed_wanted *wanted, struct refusal *refusal);

/* Takes records from stdin. */
void feed_from_stdin(struct feed *feed);

/* The next line of the records that have come; 0: no whole one has come yet, or the stream has ended. */
ssize_t feed_line(struct feed *feed, const char **line);

/* Reads what was written for people. Returns the number of bytes, 0 if there is nothing now. */
size_t feed_said(struct feed *feed, char *text, size_t size);

/* Looks whether the process has ended, without waiting. */
void feed_look(struct feed *feed);

/* Ends the process, lets it write what it has, and removes what was made. */
void feed_end(struct feed *feed);
