/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A process that writes the files of one output, if a server is behind their file system and may not answer
 * (base/local.h). It does one job at a time, and the caller waits for none of them. What is not known to be
 * written stays with the caller.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "output/documents.h"
#include "output/queue.h"

struct scribe;

enum scribe_job {
	SCRIBE_NOTHING,
	SCRIBE_OPEN,	 /* opens the file, or opens it again */
	SCRIBE_TRY,	 /* checks that documents can be created */
	SCRIBE_PUT,	 /* writes records */
	SCRIBE_DOCUMENT, /* writes a document */
	SCRIBE_CLOSE,	 /* closes the file; nothing follows */
};

/* What a scribe is told at its start. */
struct scribe_place {
	const char *path; /* NULL: the descriptor `kept` is written to */
	int kept;	  /* -1: none */
};

/* A job as it is sent. With SCRIBE_PUT and SCRIBE_DOCUMENT comes memory: `nr` sizes of records (size_t), then
 * their bytes, or the bytes of the document. */
struct scribe_asked {
	enum scribe_job job;
	bool begun;		      /* the old contents are gone already, or are to be kept */
	size_t nr;		      /* of records */
	size_t size;		      /* of all that is in the memory */
	struct timespec since, until; /* of the document, CLOCK_REALTIME */
};

struct scribe_done {
	int error;	/* errno; 0: done */
	size_t written; /* SCRIBE_PUT: number of records */
	bool local;	/* the place is on a local file system: the caller needs no scribe */
	bool old;	/* SCRIBE_OPEN: the file has contents */
};

/* How long a job may take before the output counts as stalled. */
#define SCRIBE_LATE_NS 1000000000ULL

/* What the process does: it answers each job at the socket with struct scribe_done, by itself in
 * scribe_server.c. A descriptor comes with the answer to SCRIBE_OPEN if the caller can use it without
 * waiting.
 */
typedef void (*scribe_fn)(int socket, const void *place);

/* Returns NULL with errno if there can be no process. It has the rights that the calling thread has now. */
struct scribe *scribe_start(scribe_fn serve, const struct scribe_place *place);
void scribe_end(struct scribe *scribe);

/* A descriptor that becomes readable when a job is done. */
int scribe_fd(const struct scribe *scribe);

/* The job that is not done yet. */
enum scribe_job scribe_busy(const struct scribe *scribe);

/* Whether it has taken longer than SCRIBE_LATE_NS. */
bool scribe_is_late(const struct scribe *scribe);

/* Give it a job; it must have none. They return 0 or an errno. SCRIBE_PUT takes some records at the front of
 * the queue. */
int scribe_ask(struct scribe *scribe, enum scribe_job job, bool begun);
int scribe_put(struct scribe *scribe, const struct queue *queue, bool begun);
int scribe_write(struct scribe *scribe, const struct document *document);

/* Waits until `deadline` (CLOCK_MONOTONIC, ns) for the end of the job. Returns 0; ETIMEDOUT; ECHILD if the
 * process has ended. *fd: the descriptor that came with it, owned by the caller, or -1. */
int scribe_take(struct scribe *scribe, struct scribe_done *done, int *fd, unsigned long long deadline);
