/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A session is the process and what its activities share: the facts about the host, the loop, the command
 * that is measured, the names of code, and the streams that records go to.
 */
#ifndef NHMTAP_SESSION_H
#define NHMTAP_SESSION_H

#include <stdbool.h>
#include <signal.h>
#include <time.h>
#include <jansson.h>

#include "collection/child.h"
#include "collection/self.h"
#include "host/host.h"
#include "output/output.h"
#include "refusal.h"
#include "session/control.h"
#include "session/cpu_share.h"
#include "session/limits.h"
#include "session/listen.h"
#include "session/loop.h"
#include "session/names.h"
#include "session/notices.h"

struct activity;

struct session {
	struct host host;
	struct loop *loop;
	struct stream *streams;
	size_t nr_streams;
	struct source *late;  /* writes what waits in files */
	struct source *retry; /* tries a disk without room and a lost connection again */
	int stream_error;     /* errno of a stream that was closed and could not be written to; 0: none */
	char **command;	      /* COMMAND …, NULL if there is none */
	struct child child;   /* the same at work */
	struct spent spent;   /* by all of its executions that have ended */
	struct names *names;
	struct limits limits;
	struct cpu_share *cpu_share; /* NULL: it may cost what it costs */
	struct notices notices;
	struct control control;
	struct listen *listen;	    /* NULL: nobody can ask */
	struct self *self;	    /* nhmtap's own instructions; NULL: not available */
	sigset_t ending;	    /* signals that are read: those that end the session, HUP, CHLD */
	struct inherited inherited; /* what the program was started with: the command's */
	bool alone;	       /* one activity is the session: its start and end record are the session's */
	__u64 repeat;	       /* this execution of the command, from 1 */
	const char *reason;    /* why the session ends, for the end record; NULL: it is running */
	int ended_by;	       /* the signal that ended it, 0 if none */
	enum status verdict;   /* the status if all went well: activities raise it */
	struct timespec began; /* CLOCK_MONOTONIC; zero: it never did */
	/* An activity has had enough (its duration, its intervals, a command to stop, no reader). */
	void (*enough)(struct session *session, struct activity *activity, const char *reason);
	/* A stream takes more, or its reader has gone; for the loop, whose context is the session. */
	void (*ready)(void *context, short events);
	/* No stream is left that can be written to. */
	void (*unwritable)(struct session *session);
};

/* Writes a record to every stream that takes this activity's (NULL: the session's own), and consumes it.
 * Returns 0, or -errno of a stream where none is left that can be written to. */
int session_write(struct session *session, json_t *record, const char *activity);

/* The same for a record as a list of its members, which is not changed. */
int session_write_fields(struct session *session, const char *type, const struct fields *fields,
			 const char *activity);

/* Whether an interval of this activity finds room: in one of the streams that take its records, if not in
 * all; the others then count what they miss. */
bool session_has_room(const struct session *session, const char *activity);

/* Whether a single sample or branch finds room, as a record of this type; if not, each stream counts it. */
bool session_takes_single(struct session *session, const char *type, const char *activity);

/* Before and behind the records of an interval; see stream_begin_interval(). */
void session_begin_interval(struct session *session, bool last);
void session_end_interval(struct session *session);

/* The following records are the last: streams accept them even if they have no room. */
void session_take_all(struct session *session);

/* Writes what waits in the streams, as much as is taken. Returns as session_write(). */
int session_flush(struct session *session);

/* Watches a stream for room to write, and stops watching it. */
void session_watch(struct session *session, struct stream *stream);
void session_unwatch(struct session *session, struct stream *stream);

/* Whether something waits for a reader to take it. */
bool session_waits(const struct session *session);

/* The same for what an interval has written, of which more will come: a file may wait a moment. */
int session_flush_soon(struct session *session);

/* Whether all streams have a format for people. */
bool session_all_people(const struct session *session);

/* The keys that the format of a stream needs of a command, as --by has them, this one among them; NULL: none
 * does. */
const char *session_keys(const struct session *session, const char *command, const char *key);

struct timespec now_of(clockid_t clock);

#endif
