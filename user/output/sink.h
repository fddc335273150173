/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the output goes: stdout, a file or a socket, in whole records. A session's sink never blocks: what
 * its reader does not take stays in a queue. Other commands block, since they have nothing else to do.
 */
#ifndef NHMTAP_SINK_H
#define NHMTAP_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "output/queue.h"
#include "refusal.h"

struct address;
struct documents;
struct push;

struct sink {
	int fd;			 /* -1: there is no connection */
	const char *path;	 /* NULL: stdout */
	struct address *address; /* of a socket that is connected again when lost; NULL: there is none */
	struct documents
		*documents; /* what is put goes there whole, at each sink_cut(); NULL: byte by byte */
	struct push *push;  /* has the documents sent by HTTP; NULL: they are files */
	bool terminal;
	bool regular; /* a file: it has no reader that waits */
	bool socket;
	bool lent;   /* a pipe that others write to as well, and that makes whoever writes wait */
	bool append; /* what the file has stays */
	bool begun;  /* something has been written; the file's old contents are gone */
	size_t most; /* bytes that may wait; 0: whoever puts more waits until they are written */
	int error;   /* errno of the write that failed; nothing is written after it */
	int stopped; /* errno for which it stands still, and which will pass: no room on the disk, no
		      * connection; 0 */
	bool lost;   /* the connection is, and is to be closed */
	unsigned long long pause_ns, again_ns; /* before it is connected again, and when (CLOCK_MONOTONIC) */
	const char *why;		       /* the reason of a failure, if it is not an I/O error; NULL */
	struct queue queue;
	unsigned long long bytes;      /* of all records that were put */
	unsigned long long flushed_ns; /* CLOCK_MONOTONIC */
	unsigned long long cut_try;    /* push_tries() when the last document was made */
};

/* Opens the file, or stdout if path is NULL. The file's old contents stay until something is written;
 * with `append` they stay. Returns 0, or -1 with the refusal. */
int sink_open(struct sink *sink, const char *path, bool append, struct refusal *refusal);

/* The same for a place that is an address: it is connected without waiting, and again when that was lost,
 * after pauses that grow. */
int sink_open_address(struct sink *sink, const char *place, struct refusal *refusal);

/* The same for a place that takes whole documents: what is put waits for sink_cut(). */
int sink_open_documents(struct sink *sink, const char *path, struct refusal *refusal);

/* The same for a URL: each document is a request. format, media: what it is. */
int sink_open_push(struct sink *sink, const char *url, const char *format, const char *media,
		   struct refusal *refusal);

/* Ends a document with this time; an empty one is dropped. */
void sink_cut(struct sink *sink, const struct timespec *since, const struct timespec *until);

/* How many records were dropped with documents for which there was no room, since it was asked last. */
unsigned long long sink_take_dropped(struct sink *sink);

/* Whether there is another end, which may not be there. */
bool sink_is_remote(const struct sink *sink);

/* Whether it has something that is not written. */
bool sink_has_left(const struct sink *sink);

/* The events to wait for (poll(2)). */
short sink_events(const struct sink *sink);

/* Whether it is a file that can be opened again. */
bool sink_is_file(const struct sink *sink);

/* Whether it is time to connect again; then sink_connect() does, which may take its time to succeed. */
bool sink_wants_connection(const struct sink *sink);
void sink_connect(struct sink *sink);

/* The connection is lost, for this reason; and closes it. A record that was begun is sent again. */
void sink_lose(struct sink *sink, int error);
void sink_hang_up(struct sink *sink);

/* A new open file description of this pipe or terminal, which is non-blocking whatever others set on theirs;
 * -1: there is none. */
int sink_unwaiting(int fd);

/* Opens the file again, which another program may have renamed. Where it can't be opened, the old one is
 * written on. A record that was begun is whole in the new file, and not in the old one. */
void sink_reopen(struct sink *sink);

/* Adds one whole record's text. Returns 0, or -errno of a write that failed, now or before. */
int sink_put(struct sink *sink, const char *text, size_t size);

/* Writes as much as is taken without waiting. Returns as sink_put(). After a failure a file ends with its
 * last whole record. */
int sink_flush(struct sink *sink);

/* The same, and waits until all is written or the time is over (CLOCK_MONOTONIC, ns; ~0: without an end). */
int sink_finish(struct sink *sink, unsigned long long until_ns);

/* Whether something waits for its reader to take it. */
bool sink_waits(const struct sink *sink);

/* Whether so many times `most` may wait, and less does. Documents for a server take the place of older ones,
 * one after each try to send them. */
bool sink_has_room(const struct sink *sink, unsigned int times);

/*
 * Whether records that will soon be followed by more are to be written now. Those for a regular file are
 * written at most five times a second, because write(2) is a large part of a short interval's cost. If not,
 * *due_ns (CLOCK_MONOTONIC) is set to when they are, if that is earlier.
 */
bool sink_is_due(struct sink *sink, unsigned long long *due_ns);

/* Whether there is no connection, or its server takes nothing now: it is tried again after a pause. */
bool sink_is_away(const struct sink *sink);

/* Drops what waits, if it would take the place of what a file has. */
void sink_keep_old(struct sink *sink);

/* Writes what waits and then this text, without allocating. Returns as sink_put(). */
int sink_put_last(struct sink *sink, const char *text, size_t size);

/* Writes what is taken (a session's), or all, and closes; returns as sink_put(). */
int sink_close(struct sink *sink);

/* A failed write as a refusal (status 3). */
int sink_refusal(const struct sink *sink, struct refusal *refusal);

#endif
