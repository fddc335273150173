/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whole documents, where a place takes one after the other and not a stream: files that appear under their
 * name when all of them is written, and requests of HTTP. The number that waits is bounded: if there are too
 * many, the oldest is dropped and counted.
 */
#ifndef NHMTAP_DOCUMENTS_H
#define NHMTAP_DOCUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "refusal.h"

struct document {
	struct document *next;
	char *bytes;
	size_t size;
	unsigned long long records;   /* that are in it */
	struct timespec since, until; /* what it tells of, CLOCK_REALTIME */
};

struct documents {
	const char
		*path; /* "%t" in it: a file for each, with its `since`; else each replaces the one before */
	struct document *first, **end;
	size_t bytes;
	bool full;		    /* too many wait, since the last one that was added */
	unsigned long long dropped; /* records of documents that went, since somebody asked */
};

/* Whether a path is a pattern. */
bool documents_is_pattern(const char *path);

/* Whether files can be written there; path stays the caller's, and must live as long. Returns 0, or -errno.
 */
int documents_open(struct documents *documents, const char *path);

/* Without files. */
void documents_begin(struct documents *documents, const char *path);
void documents_release(struct documents *documents);

/* Adds one, whose bytes are copied. Of more than `most` bytes (0: without a bound) the oldest go, but for
 * `kept` from the first on, and the last. */
void documents_add(struct documents *documents, const struct document *document, size_t most,
		   unsigned int kept);

/* Forgets the first. */
void documents_pop(struct documents *documents);

/* Writes the first into its file. Returns 0 or -errno. */
int documents_write(const struct documents *documents);

#endif
