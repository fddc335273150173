/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of this folder share: a session while it is run. */
#ifndef NHMTAP_RUN_PARTS_H
#define NHMTAP_RUN_PARTS_H

#include "activity/activity.h"
#include "plan/together.h"
#include "run/run.h"
#include "session/session.h"

/* An activity of the session. */
struct running {
	struct activity activity; /* the first: see on_enough() */
	struct run *run;
	struct asked *asked;
	bool going;	      /* it is open, and counts */
	bool over;	      /* it has ended, or could not start, and is not tried again */
	struct source *again; /* it is tried then */
	__u64 pause_ns;	      /* before it was tried last */
};

struct run {
	struct session session; /* the first: see on_enough() */
	struct request *request;
	json_t *resource; /* attributes of its start records */
	read_fn again;
	struct running **members;
	size_t nr;
	int signal_fd;
	struct source *signals, *control, *grace, *progress;
	struct source *heartbeat, *watchdog; /* NULL: nobody wants them */
	__u64 heartbeat_ns;
	bool unwritable;     /* no stream is left that can be written to */
	bool draining;	     /* all is done but for writing what waits */
	__u64 ended_ns;	     /* when a signal ended it, CLOCK_MONOTONIC */
	struct source *over; /* what waits is not waited for any longer */
};

/* --- shares.c --------------------------------------------------------------------------------- */

/* Sums up what all that are planned want of memory, and checks that it fits into the session's. Returns 0, or
 * -1 with the refusal. */
int sum_memory(struct run *run, struct refusal *refusal);

/* Once all are planned: the same, and has them share it. */
int share_memory(struct run *run, struct refusal *refusal);

/* --- streams.c -------------------------------------------------------------------------------- */

/* Makes stderr non-blocking: a message that finds no room is lost. */
void speak_without_waiting(void);

int open_streams(struct run *run, struct refusal *refusal);
void close_streams(struct run *run, struct refusal *refusal);

/* Watches for a stream's reader to go away. */
void watch_outputs(struct run *run);
void unwatch_outputs(struct run *run);

/* Opens the outputs of a request that has others, for `other`. Returns 0, or -1 with the refusal. */
int open_other_outputs(const struct run *run, struct request *request, struct run *other,
		       struct refusal *refusal);

/* Takes those that were opened so, or else opens the files that are there again. Returns whether there are
 * others now. */
bool take_other_outputs(struct run *run, struct run *other);

/* Opens files again that another program may have renamed. */
void reopen_outputs(struct run *run);

/* Whether there are such files. */
bool has_files(const struct run *run);
bool has_paths(const struct run *run); /* also of sockets */

/* Writes what waits in the streams, as much as is taken. */
void flush(struct run *run);

/* Waits until all is written, or if a signal has ended the session, or does, for a short time. */
void drain(struct run *run);

/* A signal has come while it waits so. */
void limit_drain(struct run *run);

/* No stream is left: counting ends, and the session with it, unless a command is waited for. */
void unwritable(struct session *session);

/* --- progress.c ------------------------------------------------------------------------------- */

/* A line of progress on stderr while the session is running, if stderr is a terminal. */
void begin_progress(struct run *run);
void end_progress(struct run *run);

/* --- service.c -------------------------------------------------------------------------------- */

/* Tells systemd that everything is measured, and both it and readers of the streams that the session is
 * alive, until the end. */
void begin_service(struct run *run);
void end_service(struct run *run);

/* CONFIG is read again; that is done. */
void service_reloads(void);
void service_is_ready(void);

/* --- records.c -------------------------------------------------------------------------------- */

/* Writes a record of the session's own, which is consumed. */
void write_own(struct run *run, json_t *record);

void write_session_start(struct run *run);
void write_session_end(struct run *run, const char *reason, int status);

/* Writes an end record after an allocation failed, if a stream has begun; allocates nothing. `context`: the
 * run. */
void write_last_words(void *context);

/* Those of an activity; the end is that of one of several. */
void write_start(struct running *member);
void write_activity_end(struct running *member);

/* The activities that are planned and have not ended; *which is the place of `member`. */
size_t gather_parties(const struct run *run, const struct running *member, struct party *parties,
		      size_t *which);

/* Adds the JSON pointer of what was refused, where the session is CONFIG's. */
int refused_at(const struct run *run, struct refusal *refusal, const char *pointer, ...)
	__attribute__((format(printf, 3, 4)));

/* --- members.c -------------------------------------------------------------------------------- */

struct running *add_member(struct run *run, struct asked *asked);
void remove_member(struct run *run, struct running *member);

bool any_left(const struct run *run);

/* How long one activity may keep the others waiting, by those that go. */
void share_time(struct run *run);

/* Each returns 0, or -1 with the refusal. start_member() is for a running session. */
int plan_member(struct running *member, struct refusal *refusal);
int start_member(struct running *member, struct refusal *refusal);

/* It could not start or continue: writes the error, and schedules another try if the request has retry. */
void give_up(struct running *member, const struct refusal *refusal);

/* One that waits to be tried again is not. */
void try_no_more(struct running *member);

/* struct session's. */
void on_enough(struct session *session, struct activity *activity, const char *reason);

/* --- signals.c -------------------------------------------------------------------------------- */

/* A signal that ends the session before there is one ends the program, of process 1 as well. */
void catch_signals(struct run *run);

/* Blocks the signals that are read from here on, and opens a signalfd. Returns 0, or -1 with the refusal. */
int block_signals(struct run *run, struct refusal *refusal);

/* Refuses, because the kernel refuses something without which nothing can be waited for. Returns -1. */
int refuse_to_wait(struct refusal *refusal, int error, const char *what);

/* Has the loop tell of signals. */
void listen_to_signals(struct run *run);
void listen_no_more(struct run *run);

/* For the loop. */
void on_control(void *context, short events);

/* Checks whether the command has ended; if so, the session ends. */
void on_command_ended(struct run *run);

/* Ends the session: the command, if there is one, gets the signal (0: it has it already) and some time. */
void end_session(struct run *run, const char *reason, int number);

/* --- reload.c --------------------------------------------------------------------------------- */

/* Reads the request again. Activities whose entry is unchanged continue; others end, or begin. */
void reload(struct run *run);

#endif
