// SPDX-License-Identifier: GPL-2.0-only
#include "session/session.h"

#include <string.h>

struct timespec now_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now;
}

/* Over all streams: one that can be written to is enough to go on. */
struct written {
	bool any;
	int failed; /* -errno of one that can't be, 0 if all can */
};

static void note(struct written *written, int err)
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
		note(&written, stream_write(&session->streams[i], json_incref(record), activity));
	json_decref(record);
	return outcome(&written);
}

int session_write_fields(struct session *session, const char *type, const struct fields *fields,
			 const char *activity)
{
	struct written written = {0};

	for (size_t i = 0; i < session->nr_streams; i++)
		note(&written, stream_write_fields(&session->streams[i], type, fields, activity));
	return outcome(&written);
}

int session_flush(struct session *session)
{
	struct written written = {0};

	for (size_t i = 0; i < session->nr_streams; i++)
		note(&written, sink_flush(&session->streams[i].sink));
	return outcome(&written);
}

static void on_late(void *context)
{
	struct session *session = context;

	session->late = NULL;
	if (session_flush(session))
		session->unwritable(session);
}

int session_flush_soon(struct session *session)
{
	struct written written = {0};
	unsigned long long due = ~0ULL;

	for (size_t i = 0; i < session->nr_streams; i++)
		note(&written, sink_flush_soon(&session->streams[i].sink, &due));
	if (due != ~0ULL && !session->late)
		session->late = loop_at(session->loop, due, on_late, session);
	return outcome(&written);
}

bool session_all_people(const struct session *session)
{
	for (size_t i = 0; i < session->nr_streams; i++)
		if (!session->streams[i].format->people)
			return false;
	return true;
}

const char *session_keys(const struct session *session, const char *command)
{
	for (size_t i = 0; i < session->nr_streams; i++) {
		const struct format *format = session->streams[i].format;

		if (format->keys && format->command && !strcmp(format->command, command))
			return format->keys;
	}
	return NULL;
}
