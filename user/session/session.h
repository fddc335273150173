/* SPDX-License-Identifier: GPL-2.0-only */
/* A session is the process, and everything that its activities share: the facts about the host, the loop, the
 * command that is measured, the names of code, and the streams that records are written to. */
#pragma once

#include <stdbool.h>
#include <signal.h>
#include <time.h>
#include <jansson.h>

#include "base/refusal.h"
#include "collection/child.h"
#include "collection/self.h"
#include "host/host.h"
#include "output/output.h"
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
	struct source *late;  /* timer: writes what waits to be written to files */
	struct source *retry; /* timer: tries again after a disk was full or a connection was lost */
	int stream_error;     /* errno of a stream that was closed after a write error; 0: none */
	char **command;	      /* COMMAND …, NULL if there is none */
	struct child child;   /* its process */
	struct spent spent;   /* resources used by all of its executions that have ended */
	struct names *names;
	struct limits limits;
	struct cpu_share *cpu_share; /* NULL: the session's cost is not limited */
	struct notices notices;
	struct control control;
	struct listen *listen;	    /* NULL: there is no HTTP server */
	struct self *self;	    /* nhmtap's own instructions; NULL: not available */
	sigset_t ending;	    /* signals read by signalfd: those that end the session, HUP, CHLD */
	struct inherited inherited; /* settings at the program's start, restored for the command */
	bool alone;	       /* there is only one activity, whose start and end records are the session's */
	__u64 repeat;	       /* number of this execution of the command, from 1 */
	const char *reason;    /* why the session ends, for the end record; NULL: it is running */
	int ended_by;	       /* the signal that ended it, 0 if none */
	enum status verdict;   /* exit status if there is no error; activities may raise it */
	struct timespec began; /* CLOCK_MONOTONIC; zero: not yet */
	/* Called when an activity is to end (its duration, its intervals, a command to stop, no reader). */
	void (*enough)(struct session *session, struct activity *activity, const char *reason);
	/* Called by the loop when a stream can be written to, or its reader has gone; the context is the
	 * session. */
	void (*ready)(void *context, short events);
	/* Called when no stream is left that can be written to. */
	void (*unwritable)(struct session *session);
};

/* Writes a record to every stream that accepts records of this activity (NULL: the session's own), and
 * releases it. Returns 0, or -errno of a stream if none is left that can be written to. */
int session_write(struct session *session, json_t *record, const char *activity);

/* The same for a record given as a list of its members, which is not changed. */
int session_write_fields(struct session *session, const char *type, const struct fields *fields,
			 const char *activity);

/* The first of the streams for this activity's records that can be written to and has room; NULL: there is
 * none. */
const struct stream *session_roomy(const struct session *session, const char *activity);

/* Whether at least one of the streams for this activity's records has room for an interval. Streams without
 * room then count what they miss. */
bool session_has_room(const struct session *session, const char *activity);

/* How many of `of` equal parts of the room are taken in the fullest of these streams, at most all. */
unsigned int session_filled(const struct session *session, const char *activity, unsigned int of);

/* Whether there is room for a single sample or branch, as a record of this type, which stands for `every`
 * samples (see struct fields). If not, each stream counts it as missed. */
bool session_takes_single(struct session *session, const char *type, const char *activity,
			  unsigned int every);

/* To be called before and after the records of an interval; see stream_begin_interval(). */
void session_begin_interval(struct session *session, __u64 began_ns, bool last);
void session_end_interval(struct session *session);

/* The following records are the last ones: streams accept them even without room. */
void session_take_all(struct session *session);

/* Writes records of what has happened to outputs by now, before the last records. */
void session_tell_last(struct session *session);

/* Writes what waits in the streams, as far as they accept it now. Returns the same as session_write(). */
int session_flush(struct session *session);

/* Watches a stream for room to write, and stops watching it. */
void session_watch(struct session *session, struct stream *stream);
void session_unwatch(struct session *session, struct stream *stream);

/* Whether anything still waits to be written. */
bool session_waits(const struct session *session);

/* Does the same as session_flush() after the records of an interval, while more intervals follow: output to
 * files may be delayed a little. */
int session_flush_soon(struct session *session);

/* Whether all streams have a format for people to read. */
bool session_all_people(const struct session *session);

/* Whether an output shows the end record of an activity: json and table do. */
bool session_shows_end(const struct session *session, const char *activity);

/* Whether an output can show mangled names. */
bool session_shows_linkage_names(const struct session *session);

/* The keys, as for --by, that the format of a stream needs of this activity and its command, if `key` is
 * among them; NULL if no stream's format does. */
const char *session_keys(const struct session *session, const char *activity, const char *command,
			 const char *key);

struct timespec now_of(clockid_t clock);
