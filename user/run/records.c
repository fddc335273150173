// SPDX-License-Identifier: GPL-2.0-only
#include "run/parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "activity/start.h"
#include "activity/uncounted.h"
#include "activity/warning.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/visible.h"
#include "collection/msr_counters.h"
#include "output/member.h"
#include "output/rows.h"
#include "record/overhead.h"
#include "record/record.h"

void write_own(struct run *run, json_t *record)
{
	struct session *session = &run->session;

	session_write(session, record, session->alone ? run->members[0]->activity.name : SESSION);
}

int refused_at(const struct run *run, struct refusal *refusal, const char *pointer, ...)
{
	struct refusal was = *refusal;
	char place[80];
	va_list arguments;

	va_start(arguments, pointer);
	vsnprintf(place, sizeof(place), pointer, arguments);
	va_end(arguments);
	if (run->request->config)
		snprintf(refusal->asked, sizeof(refusal->asked), "CONFIG, %s: %.400s", place, was.asked);
	return -1;
}

static void put_unverified(const struct run *run, json_t *start)
{
	json_t *unverified = json_array();

	for (size_t i = 0; i < run->session.nr_streams; i++) {
		const struct place_of_output *place = &run->session.streams[i].place;

		if (place->access.unverified)
			json_array_append_new(unverified, value_text(place->path, 1024));
	}
	if (json_array_size(unverified))
		json_object_set(start, "tls_unverified", unverified);
	json_decref(unverified);
}

/* What the session adds to the start record of each activity, and to its own. */
static void put_session(const struct run *run, json_t *start)
{
	json_object_update(json_object_get(start, "resource"), run->resource);
	put_unverified(run, start);
}

void write_session_start(struct run *run)
{
	json_t *start = start_base(&run->session.host, "run"), *activities = json_array();

	for (size_t i = 0; i < run->nr; i++)
		json_array_append_new(activities,
				      json_pack("{s:s, s:s}", "name", run->members[i]->asked->name, "command",
						run->members[i]->activity.command));
	json_object_set_new(start, "config", value_text(run->request->config, 1024));
	json_object_set_new(start, "activities", activities);
	put_session(run, start);
	write_own(run, start);
}

/* A new activity (`member`) counts even if it is not planned completely. */
size_t gather_parties(const struct run *run, const struct running *member, struct party *parties,
		      size_t *which)
{
	size_t nr = 0;

	for (size_t i = 0; i < run->nr && nr < TOGETHER_MOST; i++) {
		const struct running *other = run->members[i];

		if (other != member && (other->over || other->again || !other->activity.ops))
			continue;
		if (other == member)
			*which = nr;
		parties[nr++] = (struct party){other->asked->name, &other->activity.plan};
	}
	return nr;
}

/* Keeps the names of those with whom the activity shares the counters, for its counts' reasons. */
static void keep_rivals(struct activity *activity, const json_t *names)
{
	size_t i;
	json_t *name;

	activity->rivals[0] = '\0';
	json_array_foreach(names, i, name)
		list_append(activity->rivals, sizeof(activity->rivals), json_string_value(name));
}

static void put_turns(struct running *member, json_t *start)
{
	struct party parties[TOGETHER_MOST];
	struct turn turns[TURN_KINDS];
	size_t which = 0, nr = gather_parties(member->run, member, parties, &which);
	size_t nr_turns = together_turns(parties, nr, which, &member->run->session.host, turns);
	json_t *list = json_array();

	for (size_t t = 0; t < nr_turns; t++) {
		json_t *with = json_array();

		for (size_t p = 0; p < nr; p++)
			if (turns[t].with >> p & 1)
				json_array_append_new(with, json_string(parties[p].name));
		if (!strcmp(turns[t].what, TURN_COUNTERS))
			keep_rivals(&member->activity, with);
		json_array_append_new(list, json_pack("{s:s, s:o, s:s}", "what", turns[t].what, "with", with,
						      "why", turns[t].why));
	}
	if (nr_turns)
		json_object_set(start, "takes_turns", list);
	json_decref(list);
}

void write_start(struct running *member)
{
	struct activity *activity = &member->activity;
	json_t *start = start_base(&activity->session->host, activity->command);

	start_put_activity(start, activity);
	put_turns(member, start);
	put_session(member->run, start);
	warn_of_spellings(activity);
	uncounted_say_never(activity);
	activity_write(activity, start);
}

static json_t *end_base(const char *reason, const struct timespec *began)
{
	struct timespec now = now_of(CLOCK_MONOTONIC);

	return json_pack("{s:s, s:s, s:I}", "type", "end", "reason", reason ? reason : "refused",
			 "duration_ns",
			 (json_int_t)(timespec_is_set(began) ? timespec_ns(&now) - timespec_ns(began) : 0));
}

static void say_line(void *to, const char *line)
{
	(void)to;
	say("nhmtap: %s", line);
}

/* Says on stderr what formats without an end can't: that names may be those of others, and what they lack. */
static void say_of_names(const struct activity *activity, const json_t *names)
{
	char *lacking;

	if (session_shows_end(activity->session, activity->name))
		return;
	lacking = lines_lacking(names);
	if (lacking)
		say("nhmtap: %s", lacking);
	free(lacking);
	names_ambiguous(names, say_line, NULL);
}

static void put_activity_end(struct activity *activity, json_t *end)
{
	if (activity->ops && activity->ops->finish)
		activity->ops->finish(activity, end);
	if (activity->reader && timespec_is_set(&activity->began)) {
		json_t *names = reader_value(activity->reader);

		say_of_names(activity, names);
		json_object_set_new(end, "names", names);
	}
}

/* The end of one of several activities. That of a single one is in the session's end record. */
void write_activity_end(struct running *member)
{
	struct activity *activity = &member->activity;
	json_t *end =
		end_base(activity->reason ? activity->reason : member->run->session.reason, &activity->began);

	put_activity_end(activity, end);
	activity_write(activity, end);
}

static json_t *command_value(const struct session *session)
{
	const struct child *child = &session->child;
	json_t *value = json_pack("{s:i}", "pid", (int)child->pid);

	if (child->exited && child_status(child) > STATUS_SIGNAL && WIFSIGNALED(child->wait_status))
		json_object_set_new(value, "signal", json_integer(child_status(child) - STATUS_SIGNAL));
	else if (child->exited)
		json_object_set_new(value, "exit_code", json_integer(child_status(child)));
	if (session->spent.elapsed_ns) {
		json_object_set_new(value, "elapsed_ns", json_integer(session->spent.elapsed_ns));
		json_object_set_new(value, "user_ns", json_integer(session->spent.user_ns));
		json_object_set_new(value, "system_ns", json_integer(session->spent.system_ns));
	}
	return value;
}

static void put_end(const struct session *session, struct stream *stream, const json_t *end,
		    const char *activity)
{
	json_t *own = json_copy((json_t *)end);

	stream->ending = true;
	stream_tell_gap(stream);
	json_object_set_new(own, "records", json_integer(stream->records + 1));
	stream_write(stream, own, activity);
	if (timespec_is_set(&session->began))
		stream_finish(stream, true);
	stream->aside = true;
}

/* Writes the end record to each stream, with its number of records. */
void write_session_end(struct run *run, const char *reason, int status)
{
	struct session *session = &run->session;
	json_t *end;

	/* A run that never began leaves what files hold, so nothing may be flushed. */
	if (timespec_is_set(&session->began))
		session_tell_last(session);
	end = end_base(reason, &session->began);
	json_object_set_new(end, "exit_status", json_integer(status));
	if (session->child.pid)
		json_object_set_new(end, "command", command_value(session));
	if (session->alone)
		put_activity_end(&run->members[0]->activity, end);
	json_object_set_new(end, "overhead", overhead_value(session->self));
	for (size_t i = 0; i < session->nr_streams; i++)
		if (!session->streams[i].aside)
			put_end(session, &session->streams[i], end,
				session->alone ? run->members[0]->activity.name : SESSION);
	json_decref(end);
}

void write_stream_end(struct run *run, struct stream *stream)
{
	struct session *session = &run->session;
	json_t *end = end_base("reloaded", &session->began);

	json_object_set_new(end, "exit_status", json_integer(STATUS_DONE));
	if (session->child.pid)
		json_object_set_new(end, "command", command_value(session));
	json_object_set_new(end, "overhead", overhead_value(session->self));
	put_end(session, stream, end, SESSION);
	json_decref(end);
}

/* Writes an end record as a text, since making a JSON tree would take memory. */
static void write_last(const struct run *run, struct stream *stream)
{
	const struct session *session = &run->session;
	struct timespec now = now_of(CLOCK_REALTIME), at = now_of(CLOCK_MONOTONIC);
	__u64 ran = timespec_is_set(&session->began) ? timespec_ns(&at) - timespec_ns(&session->began) : 0;
	char time[TIME_TEXT], line[1024];
	struct rusage usage = {0};
	int length;

	getrusage(RUSAGE_SELF, &usage);
	length = snprintf(line, sizeof(line),
			  "{\"type\":\"end\",\"schema_version\":\"" SCHEMA_VERSION "\",\"time\":\"%s\","
			  "\"run_id\":\"%s\",\"seq\":%llu,\"activity\":\"%s\",\"reason\":\"out_of_memory\","
			  "\"duration_ns\":%llu,\"exit_status\":%d,\"overhead\":{\"cpu_time_ns\":%llu,"
			  "\"max_rss_bytes\":%llu},\"records\":%llu}\n",
			  time_text(&now, time), stream->run_id, stream->records,
			  session->alone ? run->members[0]->activity.name : SESSION, ran, STATUS_REFUSED,
			  own_cpu_ns(), usage.ru_maxrss * 1024ULL, stream->records + 1);
	sink_put_last(&stream->sink, line, length);
}

void write_last_words(void *context)
{
	const struct run *run = context;

	msr_counters_put_back();
	for (size_t i = 0; i < run->session.nr_streams; i++) {
		struct stream *stream = &run->session.streams[i];

		if (!stream->aside && stream->format->lines && stream->records)
			write_last(run, stream);
	}
}

void write_starts_again(struct run *run)
{
	write_session_start(run);
	for (size_t i = 0; i < run->nr; i++)
		if (run->members[i]->going)
			write_start(run->members[i]);
}
