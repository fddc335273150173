/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The destination of an output: stdout, a file, a socket or a URL. Only complete records are written. In a
 * session a sink never blocks: what its reader does not take stays in a queue. In other commands it blocks,
 * because they have nothing else to do.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "base/refusal.h"
#include "output/queue.h"
#include "output/scribe.h"

struct push_access;
struct document_kind;
struct address;
struct joining;
struct documents;
struct packer;
struct push;

struct sink {
	int fd;			     /* -1: not connected, or `scribe` has it */
	const char *path;	     /* borrowed, and so is that of `documents` and `push`; NULL: stdout */
	struct address *address;     /* of a socket, which is connected again if need be; else NULL */
	struct joining *joining;     /* the connection that is being made: see address_join() */
	struct documents *documents; /* made by sink_cut() of what was put; NULL: a stream */
	struct push *push;	     /* sends the documents by HTTP; NULL: they are files */
	scribe_fn serve; /* does what would wait for a file system; NULL: nothing keeps others waiting */
	struct scribe *scribe; /* opens or writes the files; NULL: this process does */
	struct packer *packer; /* compresses what is written to `fd`, a pipe; NULL: nobody does */
	bool of_bytes;	       /* what is put is no lines */
	bool terminal;
	bool regular; /* a regular file, so nobody waits for its data */
	bool socket;
	bool lent;   /* a pipe shared with other writers, whose writes must block */
	bool append; /* keep the file's old contents */
	dev_t made_on;
	ino_t made;    /* the file that was made, since there was none; 0: none was */
	bool needless; /* the run was refused: a file that was made is removed if it stays empty */
	bool begun;    /* something was written: the old contents are gone */
	bool looked;   /* what was kept of them ends with a whole record: see output/torn.h */
	bool old;      /* of `scribe` and `packer`: the file had contents when it was opened */
	bool ending;   /* nothing follows: what was written is to be closed */
	bool closed;   /* `scribe` has closed the file */
	bool unopened; /* `path` is to be opened before more is written; `fd` is the former file, or -1 */
	size_t most;   /* most bytes that may wait; 0: writing blocks */
	int error;     /* errno of a failed write, after which nothing is written; 0 */
	int stopped;   /* errno of a failure that may pass (disk full, no connection), while it lasts; 0.
			  ETIMEDOUT: the file system does not answer */
	bool lost;     /* the connection is lost; it is to be closed */
	unsigned long long pause_ns,
		again_ns; /* pause before connecting or opening again; its end, CLOCK_MONOTONIC */
	const char *why;  /* cause of a failure that is no I/O error, else NULL */
	char told[160];	  /* cause of one that errno does not tell, else empty */
	struct queue queue;
	size_t (*rows)(const char *bytes, size_t size); /* see struct format; NULL: what is put is a record */
	unsigned long long missed; /* records that gaps in the queue tell of, without these gaps themselves */
	unsigned long long bytes;  /* total of all records that were put */
	unsigned long long flushed_ns; /* time of the last write, CLOCK_MONOTONIC */
	unsigned long long cut_try;    /* push_tries() when a document was last made */
};

/* Refuses the path of a file that can't be opened, because of this errno; ENOTSUP: a page would take the
 * place of what is no file. Returns -1. */
int sink_refuse_path(struct refusal *refusal, const char *path, int error);

/* Refuses a path that can't be written to by its name: of a file, of files for documents, or NULL (stdout).
 * Returns 0, or -1 with the refusal. */
int sink_check_path(const char *path, bool documents, struct refusal *refusal);

/* Opens a file, or stdout if path is NULL. With `append` the file's old contents are kept; otherwise they are
 * kept only until the first record is written. The path is borrowed. A FIFO that nobody reads is waited for;
 * if `later` is set, records wait instead, until sink_open_again() finds a reader. With `serve` (see
 * scribe_server.h), a file behind a server is left to a process, and may be opened later. Returns 0, or -1
 * with the refusal. */
int sink_open(struct sink *sink, const char *path, bool append, bool later, scribe_fn serve,
	      struct refusal *refusal);

/* What is put is no lines: it must not be cut at line feeds. To be called before anything is put. */
void sink_take_bytes(struct sink *sink);

/* Opens a sink for an address. The connection is made without waiting. If it is lost, it is made again after
 * increasing pauses. Returns 0, or -1 with the refusal. */
int sink_open_address(struct sink *sink, const char *place, struct refusal *refusal);

/* Opens a sink for documents in files: what is put is gathered until sink_cut(). `serve`: see sink_open().
 * Returns 0, or -1 with the refusal. */
int sink_open_documents(struct sink *sink, const char *path, scribe_fn serve, struct refusal *refusal);

/* Opens a sink for documents of a kind that are sent to a URL, each in a request. Returns 0, or -1 with the
 * refusal. */
int sink_open_push(struct sink *sink, const char *url, struct document_kind kind,
		   const struct push_access *access, struct refusal *refusal);

/* Reads the files of a sink that sends anew: certificates and headers. Others are left alone. */
void sink_renew_access(struct sink *sink, const struct push_access *access);

/* Makes a document, of this interval, from what was put since the last call, unless that is empty. Returns
 * whether it made one. */
bool sink_cut(struct sink *sink, const struct timespec *since, const struct timespec *until);

/*
 * The number of records in documents that were dropped since the last call, because the bound was exceeded.
 */
unsigned long long sink_take_dropped(struct sink *sink);

/* Whether it writes to a server (a socket, a URL, or one behind a file system), which may be unreachable. */
bool sink_is_remote(const struct sink *sink);

/* Whether there is anything that is not written yet. */
bool sink_has_left(const struct sink *sink);

/* The descriptor, and the poll(2) events of it, to wait for before sink_flush() is called again. */
int sink_awaited(const struct sink *sink);
short sink_events(const struct sink *sink);

/* Whether something is under way that may turn out to be late: sink_flush() is to be called again soon. */
bool sink_is_busy(const struct sink *sink);

/* Nothing follows: a file that could not be opened is tried at once, and once all is written, it is closed,
 * if that may take time. sink_waits() tells when that is done. */
void sink_end(struct sink *sink);

/* For a process that works for a sink. The first removes from the file what was written of a record that is
 * not complete. The second drops all that waits, and what has failed. */
void sink_take_back(struct sink *sink);
void sink_forget(struct sink *sink);

/* Whether it is a file that sink_reopen() can open again. */
bool sink_is_file(const struct sink *sink);

/* Whether it is time to connect again. sink_connect() does so; the connection may be complete only later. */
bool sink_wants_connection(const struct sink *sink);
void sink_connect(struct sink *sink);

/* Closes a connection that was lost because of `error`. A record that was partly sent will be sent again from
 * its beginning. */
void sink_lose(struct sink *sink, int error);
void sink_hang_up(struct sink *sink);

/* Opens the pipe or terminal behind fd again, so that O_NONBLOCK is set for the new open file description
 * alone and does not affect other processes. Returns the new descriptor; -1 if it can't be opened. */
int sink_unwaiting(int fd);

/*
 * Opens the file's path again, for a file that another program (logrotate) may have renamed. A record that
 * was partly written is complete in the new file, and removed from the old. If the path can't be opened,
 * nothing goes into the former file any more, which may be deleted: records wait, and sink_open_again() tries
 * again, at most ten times a second.
 */
void sink_reopen(struct sink *sink);
void sink_open_again(struct sink *sink);

/* Whether sink_flush() opens files, which is to be done with the caller's rights. */
bool sink_opens(const struct sink *sink);

/* Why the sink stands still (`stopped`): the cause, as gap records have it, and in words. Valid until the
 * next call. */
const char *sink_cause(const struct sink *sink);
const char *sink_why(const struct sink *sink);

/* The number of records, and of bytes, that are not written. */
unsigned long long sink_records(const struct sink *sink);
size_t sink_left(const struct sink *sink);

/* Appends the text of a complete record. Returns 0, or -errno of a write that failed, now or before. */
int sink_put(struct sink *sink, const char *text, size_t size);

/* The same for a large record of about this size, which the caller appends to what was lent. Nothing else may
 * be done with the sink between the two. */
struct compact sink_lend(struct sink *sink, size_t size);
int sink_take(struct sink *sink, const struct compact *lent);

/* Writes as much as is possible without blocking. Returns as sink_put(). After a failure a file ends with its
 * last complete record. */
int sink_flush(struct sink *sink);

/* Like sink_flush(), but blocks until everything is written or until `until_ns` (CLOCK_MONOTONIC; ~0: no
 * limit). */
int sink_finish(struct sink *sink, unsigned long long until_ns);

/* Whether there is anything to write that the reader has not taken yet. */
bool sink_waits(const struct sink *sink);

/* Whether a document for a server is to be made. While the documents exceed the bound, a new one, which drops
 * the oldest, is made only once for each attempt to send. Making more would cost CPU time, only to drop them.
 */
bool sink_wants_document(const struct sink *sink, unsigned int times);

/* Whether fewer bytes wait than `times` times `most`. For documents of a server it is true if a document is
 * wanted: while their bound is exceeded, only one for each attempt to send, and it drops the oldest. */
static inline bool sink_has_room(const struct sink *sink, unsigned int times)
{
	if (!sink->most)
		return true;
	return sink->documents ? sink_wants_document(sink, times)
			       : queue_waiting(&sink->queue) < times * sink->most;
}

/* How many of `of` equal parts of the queue are taken, at most all; 0 for a sink that queues no bytes. */
unsigned int sink_filled(const struct sink *sink, unsigned int of);

/*
 * Whether sink_flush() is to be called now, given that more records will follow soon. Regular files are
 * written at most five times a second, because write(2) is a large part of the cost of a short interval. If
 * it returns false, *due_ns (CLOCK_MONOTONIC) is lowered to the time at which they are due.
 */
bool sink_is_due(struct sink *sink, unsigned long long *due_ns);

/*
 * Whether there is no connection, or the server refuses documents for now. It is tried again after a pause.
 */
bool sink_is_away(const struct sink *sink);

/* What waits will not be written, for the reason why the sink stands still. */
void sink_give_up(struct sink *sink);

/* Says that the run was refused. Drops what waits if nothing was written yet and writing would replace the
 * old contents of a file; if there was no file and nothing is written, sink_close() removes it again. */
void sink_keep_old(struct sink *sink);

/* Writes what waits, and then this text, without allocating memory. Returns as sink_put(). */
int sink_put_last(struct sink *sink, const char *text, size_t size);

/* Why nobody reads what is written any more: EPIPE, or what has kept a file from being compressed into. */
int sink_why_unread(const struct sink *sink);

/* Writes what can be written without blocking (in a session), or everything, and closes the sink. Returns as
 * sink_put(). */
int sink_close(struct sink *sink);

/* Fills in the refusal for a failed write (exit status 3). Returns -1. */
int sink_refusal(const struct sink *sink, struct refusal *refusal);
