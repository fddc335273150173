// SPDX-License-Identifier: GPL-2.0-only
#include "session/session.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "host/privileges.h"
#include "output/member.h"

struct timespec now_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now;
}

/* The result of writing to all streams: it suffices if one of them can be written to. */
struct written {
	bool any;
	int failed; /* -errno of a stream that can't be written to; 0 if all can */
};

static void note_written(struct written *written, int err)
{
	written->any = written->any || !err;
	written->failed = err ? err : written->failed;
}

static int outcome(const struct written *written)
{
	return written->any ? 0 : written->failed;
}

int session_write(struct session *session, json_t *record, const char *activity)
{
	struct written written = {0};

	for (size_t i = 0; i < session->nr_streams; i++)
		if (!session->streams[i].aside)
			note_written(&written,
				     stream_write(&session->streams[i], json_incref(record), activity));
	json_decref(record);
	return outcome(&written);
}

int session_write_fields(struct session *session, const char *type, const struct fields *fields,
			 const char *activity)
{
	struct written written = {0};

	for (size_t i = 0; i < session->nr_streams; i++) {
		struct stream *stream = &session->streams[i];
		bool missed = !stream->aside && stream_misses_likewise(stream, type, fields->every);

		if (stream->aside)
			continue;
		note_written(&written, missed ? -stream->sink.error
					      : stream_write_fields(stream, type, fields, activity));
	}
	return outcome(&written);
}

unsigned int session_filled(const struct session *session, const char *activity, unsigned int of)
{
	unsigned int most = 0;

	for (size_t i = 0; i < session->nr_streams; i++) {
		const struct stream *stream = &session->streams[i];
		unsigned int filled = sink_filled(&stream->sink, of);

		if (!stream->sink.error && stream_takes(stream, activity) && filled > most)
			most = filled;
	}
	return most;
}

static bool is_open_for(const struct stream *stream, const char *activity)
{
	return !stream->sink.error && stream_takes(stream, activity);
}

const struct stream *session_roomy(const struct session *session, const char *activity)
{
	for (size_t i = 0; i < session->nr_streams; i++)
		if (is_open_for(&session->streams[i], activity) && stream_has_room(&session->streams[i]))
			return &session->streams[i];
	return NULL;
}

bool session_has_room(const struct session *session, const char *activity)
{
	if (session_roomy(session, activity))
		return true;
	for (size_t i = 0; i < session->nr_streams; i++)
		if (is_open_for(&session->streams[i], activity))
			return false;
	return true;
}

bool session_takes_single(struct session *session, const char *type, const char *activity, unsigned int every)
{
	if (session_has_room(session, activity))
		return true;
	for (size_t i = 0; i < session->nr_streams; i++)
		if (stream_takes(&session->streams[i], activity))
			stream_miss(&session->streams[i], type, every);
	return false;
}

void session_begin_interval(struct session *session, __u64 began_ns, bool last)
{
	for (size_t i = 0; i < session->nr_streams; i++)
		if (!session->streams[i].aside)
			stream_begin_interval(&session->streams[i], began_ns, last);
}

void session_end_interval(struct session *session)
{
	for (size_t i = 0; i < session->nr_streams; i++)
		if (!session->streams[i].aside)
			stream_end_interval(&session->streams[i]);
}

void session_take_all(struct session *session)
{
	for (size_t i = 0; i < session->nr_streams; i++)
		session->streams[i].ending = true;
}

/* --- flushing --------------------------------------------------------------------------------- */

/* The time after which writing to a full disk is tried again. */
#define RETRY_NS 500000000ULL

static void flush_or_give_up(struct session *session)
{
	if (session_flush(session))
		session->unwritable(session);
}

static void on_late(void *context)
{
	struct session *session = context;

	session->late = NULL;
	flush_or_give_up(session);
}

static void on_retry(void *context)
{
	struct session *session = context;

	session->retry = NULL;
	session->ready(session, 0);
}

void session_watch(struct session *session, struct stream *stream)
{
	int fd = sink_awaited(&stream->sink);

	stream->listening = sink_waits(&stream->sink);
	if (fd >= 0 && !stream->source)
		stream->source =
			loop_watch(session->loop, fd, sink_events(&stream->sink), session->ready, session);
}

void session_unwatch(struct session *session, struct stream *stream)
{
	loop_remove(session->loop, &stream->source);
}

/* Has the loop tell when the stream accepts more, as long as something waits. */
static void listen_for_room(struct stream *stream)
{
	bool waits = sink_waits(&stream->sink);

	if (!stream->source || waits == stream->listening)
		return;
	loop_listen(stream->source, sink_events(&stream->sink));
	stream->listening = waits;
}

/* Opens a file that could not be opened again before, or a FIFO that nobody read. */
static void open_again(struct session *session, struct stream *stream)
{
	session_unwatch(session, stream);
	privileges_lower();
	sink_open_again(&stream->sink);
	privileges_raise();
	session_watch(session, stream);
}

/* Closes a connection that was lost, and connects again when it is time. */
static void renew_connection(struct session *session, struct stream *stream)
{
	struct sink *sink = &stream->sink;

	if (sink->unopened && session->loop)
		open_again(session, stream);
	if (sink->lost && sink->fd >= 0) {
		session_unwatch(session, stream);
		sink_hang_up(sink);
	}
	if (!session->loop || !sink_wants_connection(sink))
		return;
	privileges_lower();
	sink_connect(sink);
	privileges_raise();
	session_watch(session, stream);
}

static int flush_with_rights(struct stream *stream)
{
	bool opens = sink_opens(&stream->sink);
	int err;

	if (opens)
		privileges_lower();
	err = stream_flush(stream);
	if (opens)
		privileges_raise();
	return err;
}

/* Whether the news are of records that a server does not take. */
static bool is_loss(const json_t *news)
{
	return integer(news, "rejected") || integer(news, "refused");
}

/* Writes a record of what has happened to an output. The exit status tells what no stream can, and what
 * happened to the last records: whether an answer to these comes before the end record is chance. */
static void tell_news(struct session *session, const struct stream *stream, json_t *news)
{
	bool any = false, told = false;

	for (size_t i = 0; i < session->nr_streams; i++) {
		const struct stream *other = &session->streams[i];

		any = any || !other->aside;
		told = told || (stream_tells(other, string(news, "type")) && !other->ending);
	}
	if (!told && is_loss(news) && !session->stream_error)
		session->stream_error = EREMOTEIO;
	session_write(session, news, stream->owner);
	/* Streams that were flushed before this one have to be flushed once more. */
	if (any && session->loop && !session->late)
		session->late = loop_at(session->loop, clock_ns(CLOCK_MONOTONIC), on_late, session);
}

static int flush_stream(struct session *session, struct stream *stream)
{
	json_t *news;
	int err;

	renew_connection(session, stream);
	err = flush_with_rights(stream);
	news = stream_take_news(stream, false);
	if (news)
		tell_news(session, stream, news);
	if (!stream->sink.unopened)
		renew_connection(session, stream);
	listen_for_room(stream);
	if ((stream->sink.stopped || sink_is_busy(&stream->sink)) && !session->retry && session->loop)
		session->retry =
			loop_at(session->loop, clock_ns(CLOCK_MONOTONIC) + RETRY_NS, on_retry, session);
	return err;
}

void session_tell_last(struct session *session)
{
	session_flush(session);
	for (size_t i = 0; i < session->nr_streams; i++) {
		json_t *news = stream_take_news(&session->streams[i], true);

		if (news)
			tell_news(session, &session->streams[i], news);
	}
}

int session_flush(struct session *session)
{
	struct written written = {0};

	for (size_t i = 0; i < session->nr_streams; i++) {
		int err = flush_stream(session, &session->streams[i]);

		if (!session->streams[i].aside)
			note_written(&written, err);
	}
	return outcome(&written);
}

/*
 * Whether the loop will call when something can be written, because the stream accepts more or a retry is
 * due. Not for regular files, which epoll does not support, nor for servers that documents are sent to, which
 * may accept more than what waits.
 */
static bool is_called(const struct session *session, const struct stream *stream)
{
	const struct sink *sink = &stream->sink;

	if (sink_is_away(sink))
		return session->retry;
	return stream->source && stream->listening && !sink->push && !sink->regular;
}

int session_flush_soon(struct session *session)
{
	struct written written = {0};
	unsigned long long due = ~0ULL;

	for (size_t i = 0; i < session->nr_streams; i++) {
		struct stream *stream = &session->streams[i];
		bool now = !is_called(session, stream) && sink_is_due(&stream->sink, &due);

		if (stream->aside)
			continue;
		note_written(&written, now ? flush_stream(session, stream) : -stream->sink.error);
	}
	if (due != ~0ULL && !session->late)
		session->late = loop_at(session->loop, due, on_late, session);
	return outcome(&written);
}

bool session_waits(const struct session *session)
{
	for (size_t i = 0; i < session->nr_streams; i++)
		if (sink_waits(&session->streams[i].sink))
			return true;
	return false;
}

bool session_all_people(const struct session *session)
{
	for (size_t i = 0; i < session->nr_streams; i++)
		if (!session->streams[i].aside && !session->streams[i].format->people)
			return false;
	return true;
}

bool session_shows_end(const struct session *session, const char *activity)
{
	for (size_t i = 0; i < session->nr_streams; i++) {
		const struct stream *stream = &session->streams[i];

		if ((stream->format->people || stream->format->lines) && stream_takes(stream, activity))
			return true;
	}
	return false;
}

bool session_shows_linkage_names(const struct session *session)
{
	for (size_t i = 0; i < session->nr_streams; i++)
		if (session->streams[i].format->linkage_names)
			return true;
	return false;
}

const char *session_keys(const struct session *session, const char *activity, const char *command,
			 const char *key)
{
	for (size_t i = 0; i < session->nr_streams; i++) {
		const struct stream *stream = &session->streams[i];
		const struct format *format = stream->format;

		if ((!stream->aside || stream->foreseen) && stream_is_for(stream, activity) &&
		    list_has(format->keys, key) && list_has(format->commands, command))
			return format->keys;
	}
	return NULL;
}
