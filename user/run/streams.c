// SPDX-License-Identifier: GPL-2.0-only
#include "run/parts.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "host/privileges.h"
#include "memory.h"
#include "option/command.h"
#include "note.h"

static int check_live(const struct stream *stream, const struct options *options, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "option --live");
	if (!options->interval_ms) {
		because(refusal, "without intervals there is nothing to repaint");
		return instead(refusal, "give -I MS as well");
	}
	if (!stream->format->people || !stream->sink.terminal) {
		because(refusal, "the records do not go to a terminal as a table");
		return instead(refusal, "leave out --live, or -o and --format");
	}
	*refusal = (struct refusal){0};
	return 0;
}

void speak_without_waiting(void)
{
	int fd = sink_unwaiting(STDERR_FILENO);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (!file)
		return;
	setvbuf(file, NULL, _IONBF, 0);
	stderr = file;
}

static int error_of(int fd)
{
	int error = 0;
	socklen_t size = sizeof(error);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) ? 0 : error;
}

static void look_for_reader(struct stream *stream)
{
	struct sink *sink = &stream->sink;
	struct pollfd end = {.fd = sink->fd, .events = sink->address ? POLLRDHUP : 0};

	if (!stream->source || poll(&end, 1, 0) <= 0 || !(end.revents & (POLLERR | POLLHUP | POLLRDHUP)))
		return;
	if (sink->address)
		sink_lose(sink, error_of(sink->fd));
	else if (!sink->error)
		sink->error = EPIPE;
	note("the reader of %s has gone", sink->path ? sink->path : "stdout");
}

static void on_output(void *context, short events)
{
	struct run *run = context;
	struct session *session = &run->session;

	for (size_t i = 0; events & (POLLERR | POLLHUP | POLLRDHUP) && i < session->nr_streams; i++)
		look_for_reader(&session->streams[i]);
	flush(run);
	for (size_t i = 0; i < session->nr_streams; i++)
		if (session->streams[i].sink.error)
			session_unwatch(session, &session->streams[i]);
	if (run->draining && !session_waits(session))
		loop_stop(session->loop);
}

/* Checks that only one output is /metrics, and that there is --listen. */
static int check_scraped(const struct run *run, size_t which, struct refusal *refusal)
{
	const char *why = run->request->listen ? NULL : "nobody listens";

	for (size_t i = 0; i < which; i++)
		if (run->session.streams[i].scraped)
			why = "another output is /metrics already";
	if (!why)
		return 0;
	refuse(refusal, STATUS_USAGE, "option --output '" LISTEN "'");
	because(refusal, "%s", why);
	return instead(refusal,
		       run->request->listen ? "leave one out" : "give --listen unix:PATH or tcp:HOST:PORT");
}

int open_streams(struct run *run, struct refusal *refusal)
{
	static const struct place_of_output on_stdout = {.queue_bytes = QUEUE_BYTES};
	const struct request *request = run->request;
	struct session *session = &run->session;
	/* With a single activity, its command decides about formats that are only for some commands. */
	const char *command = session->alone ? request->entries[0]->options.command->name : NULL;
	size_t nr = request->check ? 1 : request->nr_outputs;

	session->ready = on_output;
	session->streams = xcalloc(nr, sizeof(*session->streams));
	for (size_t i = 0; i < nr; i++) {
		struct stream *stream = &session->streams[i];
		const struct options *options = &request->entries[0]->options;

		if (stream_open(stream, request->check ? &on_stdout : &request->outputs[i], command, refusal))
			return refused_at(run, refusal, "/outputs/%zu/path", i);
		session->nr_streams++;
		if (stream->scraped && check_scraped(run, i, refusal))
			return refused_at(run, refusal, "/outputs/%zu/path", i);
		memcpy(stream->run_id, session->streams[0].run_id, sizeof(stream->run_id));
		stream->owner = session->alone ? request->entries[0]->name : SESSION;
		stream->verbose = request->verbose;
		note("records go to %s as %s", stream->sink.path ? stream->sink.path : "stdout",
		     stream->format->name);
		stream->live = request->live;
		if (stream->live && check_live(stream, options, refusal))
			return -1;
		stream->intervals = !session->alone || options->interval_ms || options->control;
	}
	return 0;
}

void flush(struct run *run)
{
	if (session_flush(&run->session))
		unwritable(&run->session);
}

/* Nothing more can be written. A command continues, because its status must be returned. */
void unwritable(struct session *session)
{
	struct run *run = (struct run *)session;

	if (run->unwritable)
		return;
	run->unwritable = true;
	for (size_t i = 0; i < run->nr; i++)
		activity_wait_no_more(&run->members[i]->activity);
	if (!run->session.child.pid)
		loop_stop(run->session.loop);
}

void watch_outputs(struct run *run)
{
	for (size_t i = 0; i < run->session.nr_streams; i++)
		session_watch(&run->session, &run->session.streams[i]);
}

void unwatch_outputs(struct run *run)
{
	for (size_t i = 0; i < run->session.nr_streams; i++)
		session_unwatch(&run->session, &run->session.streams[i]);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* How long to wait for readers, after the signal that ended the session; at least DRAIN_LEAST_NS after
 * everything is in the queues, since a command may take long to end. */
#define DRAIN_NS       2000000000ULL
#define DRAIN_LEAST_NS 500000000ULL

/* The time is over. A server that is not connected is given up. One that is connected is waited for, unless a
 * signal has come. */
static void on_drain_over(void *context)
{
	struct run *run = context;
	struct session *session = &run->session;

	run->over = NULL;
	for (size_t i = 0; !session->ended_by && i < session->nr_streams; i++) {
		struct sink *sink = &session->streams[i].sink;

		if (sink_is_remote(sink) && sink->stopped && sink_has_left(sink))
			sink->error = sink->stopped;
	}
	if (session->ended_by || !session_waits(session))
		loop_stop(session->loop);
	else
		run->over = loop_at(session->loop, clock_ns(CLOCK_MONOTONIC) + DRAIN_NS, on_drain_over, run);
}

static bool any_remote(const struct session *session)
{
	for (size_t i = 0; i < session->nr_streams; i++)
		if (sink_is_remote(&session->streams[i].sink))
			return true;
	return false;
}

void limit_drain(struct run *run)
{
	__u64 least = clock_ns(CLOCK_MONOTONIC) + DRAIN_LEAST_NS, until = run->ended_ns + DRAIN_NS;

	loop_remove(run->session.loop, &run->over);
	run->over = loop_at(run->session.loop, until > least ? until : least, on_drain_over, run);
}

void drain(struct run *run)
{
	struct session *session = &run->session;

	for (size_t i = 0; !session->began.tv_sec && i < session->nr_streams; i++)
		sink_keep_old(&session->streams[i].sink);
	session_flush(session);
	if (!session->loop || !session_waits(session))
		return;
	run->draining = true;
	if (!session->ended_by && any_remote(session))
		run->ended_ns = clock_ns(CLOCK_MONOTONIC);
	if (run->ended_ns)
		limit_drain(run);
	listen_to_signals(run);
	watch_outputs(run);
	loop_run(session->loop);
	unwatch_outputs(run);
	listen_no_more(run);
	loop_remove(session->loop, &run->over);
	loop_remove(session->loop, &session->retry);
	loop_remove(session->loop, &session->late);
}

/* --- other outputs ---------------------------------------------------------------------------- */

bool has_paths(const struct run *run)
{
	for (size_t i = 0; i < run->session.nr_streams; i++)
		if (run->session.streams[i].sink.path)
			return true;
	return false;
}

bool has_files(const struct run *run)
{
	for (size_t i = 0; i < run->session.nr_streams; i++)
		if (sink_is_file(&run->session.streams[i].sink))
			return true;
	return false;
}

void reopen_outputs(struct run *run)
{
	unwatch_outputs(run);
	for (size_t i = 0; i < run->session.nr_streams; i++)
		sink_reopen(&run->session.streams[i].sink);
	watch_outputs(run);
	flush(run);
}

/* If the outputs are the same, the streams borrow strings from the new request from now on. */
static void borrow_from(struct run *run, const struct request *request)
{
	struct session *session = &run->session;

	for (size_t i = 0; i < session->nr_streams; i++) {
		session->streams[i].sink.path = request->outputs[i].path;
		session->streams[i].activities = request->outputs[i].activities;
		session->streams[i].types = request->outputs[i].types;
		sink_reopen(&session->streams[i].sink);
	}
}

static bool same_outputs(const struct run *run, const struct request *request)
{
	const json_t *before = json_object_get(run->request->document, "outputs");
	const json_t *now = json_object_get(request->document, "outputs");

	return json_equal(before, now) || (!before && !now);
}

int open_other_outputs(const struct run *run, struct request *request, struct run *other,
		       struct refusal *refusal)
{
	struct refusal ignored = {0};

	*other = (struct run){.request = request};
	if (same_outputs(run, request))
		return 0;
	if (open_streams(other, refusal)) {
		close_streams(other, &ignored);
		return -1;
	}
	for (size_t i = 0; i < other->session.nr_streams; i++)
		memcpy(other->session.streams[i].run_id, run->session.streams[0].run_id,
		       sizeof(run->session.streams[0].run_id));
	return 0;
}

bool take_other_outputs(struct run *run, struct run *other)
{
	struct session *session = &run->session;
	bool others = other->session.nr_streams;
	struct refusal ignored = {0};

	unwatch_outputs(run);
	if (others) {
		write_session_end(run, "reloaded", STATUS_DONE);
		close_streams(run, &ignored);
		session->streams = other->session.streams;
		session->nr_streams = other->session.nr_streams;
	} else {
		borrow_from(run, other->request);
	}
	watch_outputs(run);
	return others;
}

void close_streams(struct run *run, struct refusal *refusal)
{
	struct session *session = &run->session;

	for (size_t i = 0; i < session->nr_streams; i++) {
		struct stream *stream = &session->streams[i];

		if (stream_close(stream) && stream->sink.error != EPIPE && !refusal->asked[0])
			sink_refusal(&stream->sink, refusal);
		session->stream_error = session->stream_error ? session->stream_error : stream->sink.error;
	}
	free(session->streams);
	session->streams = NULL;
	session->nr_streams = 0;
}
