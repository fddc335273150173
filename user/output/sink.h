/* SPDX-License-Identifier: GPL-2.0-only */
/* Where the output goes: stdout or a file, in whole records. */
#ifndef NHMTAP_SINK_H
#define NHMTAP_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "refusal.h"

struct sink {
	int fd;
	const char *path; /* NULL: stdout */
	bool terminal;
	bool regular;		  /* a file: nobody waits for it as the reader of a pipe does */
	bool append;		  /* what the file has stays */
	bool begun;		  /* something has been written; the file's old contents are gone */
	int error;		  /* errno of the write that failed; nothing is written after it */
	const char *why;	  /* it failed, where that is no matter of writing; NULL */
	off_t whole;		  /* bytes of whole records in a file */
	unsigned long long bytes; /* of all records that were put */
	char *buffer;		  /* records that wait to be written */
	size_t used, room;
	unsigned long long flushed_ns; /* CLOCK_MONOTONIC */
};

/* Opens the file, or stdout if path is NULL. The file's old contents stay until the first record; with
 * `append` they stay. Returns 0, or -1 with the refusal. */
int sink_open(struct sink *sink, const char *path, bool append, struct refusal *refusal);

/* Writes what waits, and opens the file again, which another program may have renamed. Where it can't be
 * opened, the old one is written on. Returns as sink_put(). */
int sink_reopen(struct sink *sink);

/* Adds one whole record's text. Returns 0, or -errno of a write that failed, now or before. */
int sink_put(struct sink *sink, const char *text, size_t size);

/* Writes what waits. Returns as sink_put(). After a failure a file ends with its last whole record. */
int sink_flush(struct sink *sink);

/*
 * The same for records of which more will come soon: into a regular file they are written five times a
 * second and no more often, for the call is much of what a short interval costs. *due_ns (CLOCK_MONOTONIC)
 * is set to when it is to be called again, if that is earlier, where something waits.
 */
int sink_flush_soon(struct sink *sink, unsigned long long *due_ns);

/* Writes what waits and then this text, without allocating. Returns as sink_put(). */
int sink_put_last(struct sink *sink, const char *text, size_t size);

/* Flushes and closes; returns as sink_put(). */
int sink_close(struct sink *sink);

/* A failed write as a refusal (status 3). */
int sink_refusal(const struct sink *sink, struct refusal *refusal);

#endif
