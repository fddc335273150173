// SPDX-License-Identifier: GPL-2.0-only
#include "session/session.h"

struct timespec now_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now;
}

int session_write(struct session *session, json_t *record, const char *activity)
{
	int err = 0, failed = 0;
	bool written = false;

	for (size_t i = 0; i < session->nr_streams; i++) {
		err = stream_write(&session->streams[i], json_incref(record), activity);
		written = written || !err;
		failed = err ? err : failed;
	}
	json_decref(record);
	return written ? 0 : failed;
}

int session_write_fields(struct session *session, const char *type, const struct fields *fields,
			 const char *activity)
{
	int err = 0, failed = 0;
	bool written = false;

	for (size_t i = 0; i < session->nr_streams; i++) {
		err = stream_write_fields(&session->streams[i], type, fields, activity);
		written = written || !err;
		failed = err ? err : failed;
	}
	return written ? 0 : failed;
}

int session_flush(struct session *session)
{
	bool written = false;
	int failed = 0;

	for (size_t i = 0; i < session->nr_streams; i++) {
		int err = sink_flush(&session->streams[i].sink);

		written = written || !err;
		failed = err ? err : failed;
	}
	return written ? 0 : failed;
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
	unsigned long long due = ~0ULL;
	bool written = false;
	int failed = 0;

	for (size_t i = 0; i < session->nr_streams; i++) {
		int err = sink_flush_soon(&session->streams[i].sink, &due);

		written = written || !err;
		failed = err ? err : failed;
	}
	if (due != ~0ULL && !session->late)
		session->late = loop_at(session->loop, due, on_late, session);
	return written ? 0 : failed;
}

bool session_any_people(const struct session *session)
{
	for (size_t i = 0; i < session->nr_streams; i++)
		if (session->streams[i].format->people)
			return true;
	return false;
}

bool session_all_people(const struct session *session)
{
	for (size_t i = 0; i < session->nr_streams; i++)
		if (!session->streams[i].format->people)
			return false;
	return true;
}
