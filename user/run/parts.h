/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of this folder share: the state of a running session. */
#pragma once

#include "activity/activity.h"
#include "base/apart.h"
#include "plan/together.h"
#include "run/run.h"
#include "session/session.h"

/* An activity of the running session. */
struct running {
	struct activity activity; /* must be the first member: see on_enough() */
	struct run *run;
	struct asked *asked;
	bool going;	      /* it is open and counting */
	bool over;	      /* it has ended or could not start, and is not tried again */
	bool refused;	      /* over, because it could not start: SIGHUP tries it again */
	struct source *again; /* timer for the next try; NULL: none */
	__u64 pause_ns;	      /* pause before the last try */
};

struct run {
	struct session session; /* must be the first member: see on_enough() */
	struct request *request;
	json_t *resource; /* resource attributes for start records */
	read_fn again;
	struct running **members;
	size_t nr;
	int signal_fd;
	struct source *signals, *control, *grace, *progress;
	struct source *others_written; /* to the terminal that has the line of progress */
	const struct apart *watcher;   /* the request's, which a reload replaces */
	struct apart contexts;	       /* reads what measured processes publish; no pid: there is none */
	pid_t *followed;	       /* processes that it looks at, ended by 0; none: all */
	struct source *context_source;
	struct source *watched;		     /* CONFIG, which a process watches; NULL: it isn't watched */
	struct source *heartbeat, *watchdog; /* NULL: not requested */
	struct source *leaving;		     /* timer for streams that were removed; NULL: there are none */
	__u64 heartbeat_ns;
	bool refused;		   /* all that the last HUP asked for was refused: nothing is measured */
	struct source *beginning;  /* the command has not executed its program yet; NULL: it has */
	struct refusal unexecuted; /* why it can't, if it was told late */
	bool unwritable;	   /* no stream is left that can be written to */
	bool draining;		   /* everything is done except writing what waits */
	__u64 ended_ns;		   /* when a signal ended it, CLOCK_MONOTONIC */
	struct source *over;	   /* timer for giving up what still waits */
};

/* --- shares.c --------------------------------------------------------------------------------- */

/* Sums up the memory that all planned activities need, and checks that it fits the session's limit. Returns
 * 0, or -1 with the refusal. */
int sum_memory(struct run *run, struct refusal *refusal);

/* Does the same after all are planned, and divides the memory among them. */
int share_memory(struct run *run, struct refusal *refusal);

/* Sets the bound of a stream's queue by the session's limit of memory. */
void share_queue(const struct run *run, struct sink *sink);

/* --- streams.c -------------------------------------------------------------------------------- */

/* Makes stderr non-blocking. A message for which there is no room is lost. */
void speak_without_waiting(void);

int open_streams(struct run *run, struct refusal *refusal);
void keep_old_files(struct run *run);
void close_streams(struct run *run, struct refusal *refusal);

/* Releases the streams that stand for outputs while --check plans: see stream_foresee(). */
void forget_foreseen(struct run *run);

/* Starts and stops watching the streams: for room to write, and for readers that go away. */
void watch_outputs(struct run *run);
void unwatch_outputs(struct run *run);

/* The outputs of a new request, for the places that no stream of the session is at. */
struct other_outputs {
	struct stream *streams; /* one for each place; not opened where `going` has one */
	size_t *going; /* for each place the index of the session's stream that is there, or NOWHERE */
	size_t nr;
};

#define NOWHERE (~(size_t)0)

/* Opens what a new request has of other outputs. Returns 0, or -1 with the refusal. */
int open_other_outputs(const struct run *run, const struct request *request, struct other_outputs *others,
		       struct refusal *refusal);

/*
 * Takes over the outputs of a new request. A stream whose output has not changed goes on; its file is opened
 * again. Others end, and begin with the start records of what is going. Where a place and a format stay, so
 * do the queue, the numbers of records and the counts since the run began. What still waits in a stream that
 * was removed is written as long as its reader takes it; what is not is told in the other streams.
 */
void take_other_outputs(struct run *run, const struct request *request, struct other_outputs *others);

/* Opens output files again, because another program may have renamed them. */
void reopen_outputs(struct run *run);

/* Whether any output is a file that can be opened again. */
bool has_files(const struct run *run);
bool has_paths(const struct run *run); /* whether any output has a path; also sockets */

/* Writes what waits in the streams, as far as they accept it now. */
void flush(struct run *run);

/* Called when no stream is left that can be written to: counting ends. The session ends too, unless it must
 * wait for a command. */
void unwritable(struct session *session);

/* --- progress.c ------------------------------------------------------------------------------- */

/* Shows a line of progress on stderr while the session is running, if stderr is a terminal. */
void begin_progress(struct run *run);
void end_progress(struct run *run);

/* --- service.c -------------------------------------------------------------------------------- */

/* Tells systemd that the session is ready; until the end, tells systemd and readers of the streams that it is
 * alive. */
void begin_service(struct run *run);
void end_service(struct run *run);

/* Tell systemd that CONFIG is being read again, and that this is done. */
void service_reloads(void);
void service_is_ready(void);

/* --- contexts.c ------------------------------------------------------------------------------- */

/* Start and stop following what the measured processes publish about themselves, if any output names
 * resources: each change becomes a record. */
void begin_contexts(struct run *run);
void end_contexts(struct run *run);

/* --- records.c -------------------------------------------------------------------------------- */

/* Writes a record of the session itself, and releases it. */
void write_own(struct run *run, json_t *record);

void write_session_start(struct run *run);
void write_session_end(struct run *run, const char *reason, int status);

/* Writes the start records of the session and of all that is going. */
void write_starts_again(struct run *run);

/* Writes the end record to a stream whose output HUP has removed or changed. */
void write_stream_end(struct run *run, struct stream *stream);

/* Writes an end record after an allocation failed, if a stream has begun; allocates nothing. `context`: the
 * run. */
void write_last_words(void *context);

/* Write the start and end records of an activity; the end record only if it is one of several. */
void write_start(struct running *member);
void write_activity_end(struct running *member);

/* Gathers the activities that are planned and have not ended. Sets *which to the index of `member`. */
size_t gather_parties(const struct run *run, const struct running *member, struct party *parties,
		      size_t *which);

/* If the request is from CONFIG, adds the JSON pointer of what was refused. Returns -1. */
int refused_at(const struct run *run, struct refusal *refusal, const char *pointer, ...)
	__attribute__((format(printf, 3, 4)));

/* --- members.c -------------------------------------------------------------------------------- */

struct running *add_member(struct run *run, struct asked *asked);
void remove_member(struct run *run, struct running *member);

/* Raises the priority if an activity has a stream, and lowers it if none has any more. Must be called before
 * its command is started. */
void read_streams_first(const struct run *run);

bool any_left(const struct run *run);

/* Sets how long one activity may delay the others, by the intervals of those that are running. */
void share_time(struct run *run);

/*
 * Return 0, or -1 with the refusal. An activity is planned, then planned again beside the others if their
 * events hold counters that its groups would need, which must be planned once by then. start_member() opens
 * and begins it while the session is running.
 */
int plan_member(struct running *member, struct refusal *refusal);
int plan_beside(struct running *member, struct refusal *refusal);
int start_member(struct running *member, struct refusal *refusal);

/* To be called when an activity could not start or continue: closes it, writes the error, and schedules
 * another try if the request has `retry`. */
void give_up(struct running *member, const struct refusal *refusal);

/* Cancels the next try of an activity. */
void try_no_more(struct running *member);

/* The function `enough` of struct session. */
void on_enough(struct session *session, struct activity *activity, const char *reason);

/* --- signals.c -------------------------------------------------------------------------------- */

/* Makes signals end the program until a session is running, even as process 1. */
void catch_signals(struct run *run);

/* Blocks the signals that are read from now on, and opens a signalfd. Returns 0, or -1 with the refusal. */
int signals_block(struct run *run, struct refusal *refusal);

/* Fills in a refusal: the kernel has refused something that is needed for waiting. Returns -1. */
int refuse_to_wait(struct refusal *refusal, int error, const char *what);

/* Starts and stops reading signals by the loop. */
void listen_to_signals(struct run *run);
void listen_no_more(struct run *run);

/* Starts to read CONFIG again when it has changed, if it is watched. */
void listen_to_changes(struct run *run);

/* Called by the loop when a command may have come in (--control). */
void on_control(void *context, short events);

/* --- ending.c ---------------------------------------------------------------------------------- */

/* Most commands end within this time after a signal, and then the last interval is the only one. What was
 * measured until now is written before containers and services are killed, ten seconds after SIGTERM or
 * later. Another signal within this time asks for nothing more. */
#define SOON_NS 200000000ULL

/* Limits that wait, because a signal has come. */
void limit_drain(struct run *run);

/* Checks whether the command has ended. If so, the session ends. */
void on_command_ended(struct run *run);

/* Ends the session. A running command gets the signal `number` (0: it already has it), and is measured and
 * waited for until it ends. */
void end_session(struct run *run, const char *reason, int number);

/* The command that gets the signal which ends the wait for it; for a signal handler. 0: there is none, or it
 * has ended. */
pid_t command_waited_for(void);

/* Whether the session only waits for its command to end. */
bool has_command(const struct session *session);

/* --- reload.c --------------------------------------------------------------------------------- */

/* Reads the request again. Activities whose entry is unchanged continue. The others end, and
 * new ones begin. */
void reload(struct run *run);
