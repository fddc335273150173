/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whole documents, for places that take one document after the other and not a stream: files that appear
 * under their name only once they are complete, and HTTP requests. The number of bytes that may wait is
 * bounded: beyond the bound the oldest documents are dropped and their records counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/refusal.h"
#include "output/halves.h"

/* What the documents of a list are. */
struct document_kind {
	const char *format, *media; /* name of the format, and its media type; NULL: it has no documents */
	halve_t *halve;		    /* NULL: they can't be halved */
};

struct document {
	struct document *next;
	char *bytes;
	size_t size;
	unsigned long long records;   /* that are missing if it is lost: those in it, and `missed` */
	unsigned long long missed;    /* records that gaps in it tell of */
	struct timespec since, until; /* the interval that it covers, CLOCK_REALTIME */
	bool goes_on;		      /* the next one is another part of the same */
};

struct documents {
	const char *path; /* with "%t" in it: a file for each document, named by `since`; otherwise each
			     document replaces the one before */
	struct document *first, **end;
	size_t bytes;
	bool full;		    /* the bound was exceeded when a document was last added */
	unsigned long long dropped; /* records in dropped documents, since the caller last reset it */
};

/* Whether a path is a pattern, that is, contains "%t". */
bool documents_is_pattern(const char *path);

/* Whether a path is a link into /proc, as /dev/stdout is: no document takes its place, whatever it leads to.
 * Asks the file system, so it may wait. */
bool documents_leads_into_proc(const char *path);

/* Checks that files can be created at the path, and begins an empty list. The path is borrowed and must
 * outlive the list. Returns 0, or -errno. */
int documents_open(struct documents *documents, const char *path);

/* Begins an empty list without checking that files can be created, for documents that are sent elsewhere. */
void documents_begin(struct documents *documents, const char *path);
void documents_release(struct documents *documents);

/* Adds a document and copies its bytes. If all together then have more than `most` bytes (0: no bound), the
 * oldest are dropped; but never the first `kept`, which are being sent, nor the new one. */
void documents_add(struct documents *documents, const struct document *document, size_t most,
		   unsigned int kept);

/* Removes the first document and frees it. */
void documents_pop(struct documents *documents);

/* Puts two parts, whose bytes it takes over, in the place of the first document. */
void documents_split(struct documents *documents, const struct half parts[2]);

/* Removes the first document, which was taken. If it is a part, its records are missing if the next one is.
 */
void documents_taken(struct documents *documents);

/* Writes the first document into its file, and renames the file once it is complete. Documents that the next
 * one would replace at once are dropped. Returns 0 or -errno: -ENOTSUP if the place of a page has become a
 * FIFO, a device or a socket. */
int documents_write(struct documents *documents);
