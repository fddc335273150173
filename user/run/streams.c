// SPDX-License-Identifier: GPL-2.0-only
#include "run/parts.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

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

int open_streams(struct run *run, struct refusal *refusal)
{
	static const struct place_of_output on_stdout;
	const struct request *request = run->request;
	struct session *session = &run->session;
	/* A line of output that only one command has a format for is for that command. */
	const char *command = session->alone ? request->entries[0]->options.command->name : NULL;
	size_t nr = request->check ? 1 : request->nr_outputs;

	session->streams = xcalloc(nr, sizeof(*session->streams));
	run->outputs = xcalloc(nr, sizeof(*run->outputs));
	for (size_t i = 0; i < nr; i++) {
		struct stream *stream = &session->streams[i];
		const struct options *options = &request->entries[0]->options;

		if (stream_open(stream, request->check ? &on_stdout : &request->outputs[i], command, refusal))
			return refused_at(run, refusal, "/outputs/%zu/path", i);
		session->nr_streams++;
		memcpy(stream->run_id, session->streams[0].run_id, sizeof(stream->run_id));
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

/* Nothing more can be written. The command goes on; its status is still to be passed on. */
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

static void on_output(void *context, short events)
{
	struct run *run = context;

	for (size_t i = 0; i < run->session.nr_streams; i++) {
		struct pollfd end = {.fd = run->session.streams[i].sink.fd};

		if (!run->outputs[i] || poll(&end, 1, 0) <= 0 || !(end.revents & (POLLERR | POLLHUP)))
			continue;
		if (!run->session.streams[i].sink.error)
			run->session.streams[i].sink.error = EPIPE;
		note("the reader of %s has gone",
		     run->session.streams[i].sink.path ? run->session.streams[i].sink.path : "stdout");
		loop_remove(run->session.loop, &run->outputs[i]);
	}
	flush(run);
}

void watch_outputs(struct run *run)
{
	struct session *session = &run->session;

	/* No events are asked for: that its reader has gone is told all the same. */
	for (size_t i = 0; i < session->nr_streams; i++)
		run->outputs[i] = loop_watch(session->loop, session->streams[i].sink.fd, 0, on_output, run);
}

void unwatch_outputs(struct run *run)
{
	for (size_t i = 0; i < run->session.nr_streams; i++)
		loop_remove(run->session.loop, &run->outputs[i]);
}

/* What the streams borrow is in the new request as well, where the outputs are the same. */
static void borrow_from(struct run *run, const struct request *request)
{
	struct session *session = &run->session;

	for (size_t i = 0; i < session->nr_streams; i++) {
		session->streams[i].sink.path = request->outputs[i].path;
		session->streams[i].activities = request->outputs[i].activities;
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
		run->outputs = other->outputs;
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
	free(run->outputs);
	session->streams = NULL;
	session->nr_streams = 0;
	run->outputs = NULL;
}
