// SPDX-License-Identifier: GPL-2.0-only
#include "run/parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "activity/life.h"
#include "base/clock.h"
#include "base/note.h"
#include "base/visible.h"

/* When a person is told that the command has not ended. */
#define LATE_NS 2000000000ULL

/* When a command that was killed should have ended. */
#define STUCK_NS 1000000000ULL

/* The command, for a signal handler: it gets the signal that ends the wait for it. 0: there is none, or it
 * has ended. */
static volatile pid_t waited_for;

static void on_late(void *context)
{
	struct run *run = context;

	run->grace = NULL;
	if (!run->request->quiet)
		say("nhmtap: the command (process %d) has not ended yet and is still measured; a second "
		    "signal ends nhmtap at once",
		    run->session.child.pid);
}

/* Whether each output can hold an interval more than was asked for. */
static bool may_write_interval(const struct run *run)
{
	for (size_t i = 0; i < run->session.nr_streams; i++) {
		const struct stream *stream = &run->session.streams[i];

		if (stream->format->whole && !stream->sink.documents)
			return false;
	}
	return !run->unwritable && !run->members[0]->asked->options.repeats;
}

/* Whether a thread was killed and goes on waiting in the kernel. A signal that ends a process becomes SIGKILL
 * for its threads, until they take it: complete_signal(), kernel/signal.c. */
static bool is_thread_stuck(int folder, const char *thread)
{
	unsigned long long pending = 0;
	char path[300], text[4096];
	const char *line;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "%s/status", thread);
	fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = '\0';
	line = strstr(text, "\nSigPnd:");
	return line && sscanf(line, " SigPnd: %llx", &pending) == 1 && pending & 1ULL << (SIGKILL - 1);
}

/* The same for any thread of a process, which can't end before it: the thread waits for a file system that
 * does not answer, perhaps for ever. */
static bool is_stuck(pid_t pid)
{
	char path[64];
	struct dirent *entry;
	bool stuck = false;
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	threads = opendir(path);
	while (threads && !stuck && (entry = readdir(threads)))
		stuck = entry->d_name[0] != '.' && is_thread_stuck(dirfd(threads), entry->d_name);
	if (threads)
		closedir(threads);
	return stuck;
}

static void on_stuck(void *context)
{
	struct run *run = context;
	struct session *session = &run->session;

	run->grace = loop_at(session->loop, clock_ns(CLOCK_MONOTONIC) + LATE_NS - STUCK_NS, on_late, run);
	if (!has_command(session) || (!child_is_beginning(&session->child) && !is_stuck(session->child.pid)))
		return;
	say("nhmtap: the command (process %d) was killed and can't end: a file system or device that it "
	    "waits for does not answer",
	    session->child.pid);
	loop_stop(session->loop);
}

/* The command needs its time to end. If something kills nhmtap before, what it did until now is written. */
static void on_soon_over(void *context)
{
	struct run *run = context;
	struct session *session = &run->session;

	run->grace = loop_at(session->loop, clock_ns(CLOCK_MONOTONIC) + STUCK_NS - SOON_NS, on_stuck, run);
	if (!may_write_interval(run))
		return;
	for (size_t i = 0; i < session->nr_streams; i++)
		session->streams[i].intervals = true;
	for (size_t i = 0; i < run->nr; i++)
		if (run->members[i]->going)
			activity_report(&run->members[i]->activity, false);
	flush(run);
}

bool has_command(const struct session *session)
{
	return session->child.pid && !session->child.exited;
}

void end_session(struct run *run, const char *reason, int number)
{
	struct session *session = &run->session;

	if (!session->reason)
		session->reason = reason;
	if (!has_command(session)) {
		loop_stop(session->loop);
		return;
	}
	if (number)
		kill(session->child.pid, number);
	waited_for = session->child.pid;
	if (!run->grace)
		run->grace = loop_at(session->loop, clock_ns(CLOCK_MONOTONIC) + SOON_NS, on_soon_over, run);
}

pid_t command_waited_for(void)
{
	return waited_for;
}

static void add_spent(struct spent *sum, const struct spent *spent)
{
	sum->elapsed_ns += spent->elapsed_ns;
	sum->user_ns += spent->user_ns;
	sum->system_ns += spent->system_ns;
}

void on_command_ended(struct run *run)
{
	struct session *session = &run->session;
	bool known = session->child.exited;

	if (!child_reap(&session->child) || !session->child.pid || run->draining)
		return;
	waited_for = 0;
	if (!known) {
		note("process %d has ended, status %d", session->child.pid, child_status(&session->child));
		add_spent(&session->spent, &session->child.spent);
	}
	if (!session->reason)
		session->reason = "exited";
	loop_stop(session->loop);
}

/* --- what waits in the streams ------------------------------------------------------------------ */

/* How long to wait for readers, after the signal that ended the session; at least DRAIN_LEAST_NS after
 * everything is in the queues, since a command may take long to end. */
#define DRAIN_NS       2000000000ULL
#define DRAIN_LEAST_NS 500000000ULL

/* Whether nobody may ever read what waits: a server is not connected, or a FIFO has no reader and there are
 * only the refusals of a run that has measured nothing, which stderr has, too. */
static bool is_hopeless(const struct session *session, const struct sink *sink)
{
	bool unread = !timespec_is_set(&session->began) && sink->unopened && sink->fd < 0;

	return sink->stopped && (sink_is_remote(sink) || unread) && sink_has_left(sink);
}

/* The time is over. What is hopeless is given up. A server that is connected is waited for, unless a signal
 * has come. */
static void on_drain_over(void *context)
{
	struct run *run = context;
	struct session *session = &run->session;

	run->over = NULL;
	for (size_t i = 0; !session->ended_by && i < session->nr_streams; i++) {
		struct sink *sink = &session->streams[i].sink;

		if (is_hopeless(session, sink))
			sink_give_up(sink);
	}
	if (session->ended_by || !session_waits(session))
		loop_stop(session->loop);
	else
		run->over = loop_at(session->loop, clock_ns(CLOCK_MONOTONIC) + DRAIN_NS, on_drain_over, run);
}

void limit_drain(struct run *run)
{
	__u64 least = clock_ns(CLOCK_MONOTONIC) + DRAIN_LEAST_NS, until = run->ended_ns + DRAIN_NS;

	loop_remove(run->session.loop, &run->over);
	run->over = loop_at(run->session.loop, until > least ? until : least, on_drain_over, run);
}
