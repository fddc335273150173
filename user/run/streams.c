// SPDX-License-Identifier: GPL-2.0-only
#include "run/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "activity/life.h"
#include "base/apart.h"
#include "base/clock.h"
#include "base/local.h"
#include "base/memory.h"
#include "base/note.h"
#include "base/packet.h"
#include "base/path.h"
#include "base/visible.h"
#include "host/privileges.h"
#include "option/command.h"
#include "output/address.h"
#include "output/push.h"
#include "session/listen.h"

static int check_live(const struct stream *stream, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "option --live");
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

	if (!stream->source || sink->scribe || poll(&end, 1, 0) <= 0 ||
	    !(end.revents & (POLLERR | POLLHUP | POLLRDHUP)))
		return;
	if (sink->address)
		sink_lose(sink, error_of(sink->fd));
	else if (!sink->error)
		sink->error = sink_why_unread(sink);
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

/* --- places ----------------------------------------------------------------------------------- */

static bool is_scraped(const struct place_of_output *place)
{
	return place->path && !strcmp(place->path, LISTEN);
}

/* Checks that only one output is /metrics, and that there is --listen. Who can't listen is not told to. */
static int check_scraped(const struct request *request, size_t which, struct refusal *refusal)
{
	const char *why = request->listen ? NULL : "nobody listens";

	for (size_t i = 0; i < which; i++)
		if (is_scraped(&request->outputs[i]))
			why = "another output is /metrics already";
	if (!why)
		return 0;
	if (!request->listen && listen_check("option --output", LISTEN, refusal))
		return -1;
	refuse(refusal, STATUS_USAGE, "option --output '" LISTEN "'");
	because(refusal, "%s", why);
	return instead(refusal,
		       request->listen ? "leave one out" : "give --listen unix:PATH or tcp:HOST:PORT");
}

static bool is_of_files(const char *path)
{
	return !address_is(path) && !address_is_url(path);
}

/* What stat(2) says of a path, from a process that asks. */
struct looked {
	int error;
	struct stat stat;
};

static void look_and_tell(int socket, const void *path)
{
	struct looked looked = {0};

	privileges_of_files();
	looked.error = fstatat(AT_FDCWD, path, &looked.stat, 0) ? errno : 0;
	packet_send(socket, (struct iovec[]){{&looked, sizeof(looked)}}, 1, -1);
}

/* How long to wait for the file system of an output. */
#define LOOK_NS 300000000ULL
#define LATE_NS 2000000000ULL

/* As stat(2), but fails if a file system does not answer. */
static int stat_apart(const char *path, struct stat *stat)
{
	static __u64 late_ns;
	struct looked looked = {.error = ETIMEDOUT};
	__u64 now = clock_ns(CLOCK_MONOTONIC);
	int fd;

	if (local_place(path))
		return fstatat(AT_FDCWD, path, stat, 0);
	/* Several outputs on the same file system are waited for once. */
	if ((!late_ns || now - late_ns > LATE_NS) &&
	    apart_once("nhmtap-output", look_and_tell, path, -1, &looked, sizeof(looked), &fd, LOOK_NS))
		late_ns = now;
	*stat = looked.stat;
	errno = looked.error;
	return looked.error ? -1 : 0;
}

static int stat_output(const char *path, struct stat *stat)
{
	return path ? stat_apart(path, stat) : fstat(STDOUT_FILENO, stat);
}

static int look_at_folder(const char *path, struct stat *stat)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? xasprintf("%.*s/", (int)(slash - path), path) : xstrdup(".");
	int err = stat_output(folder, stat);

	free(folder);
	return err;
}

static bool is_same_inode(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* Whether two paths are the same file, or will be once they are created. Several writers of a device (a
 * terminal, /dev/null) don't disturb each other. */
static bool is_same_file(const char *one, const char *other)
{
	struct stat first, second;

	if (!stat_output(one, &first) && !stat_output(other, &second) && is_same_inode(&first, &second))
		return S_ISREG(first.st_mode) || S_ISFIFO(first.st_mode);
	if (!one || !other || strcmp(path_last(one), path_last(other)))
		return false;
	if (look_at_folder(one, &first) || look_at_folder(other, &second))
		return !strcmp(one, other);
	return is_same_inode(&first, &second);
}

static int refuse_config(const char *path, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "option --output '%.300s'", path);
	because(refusal, "it is CONFIG itself, which could not be read again");
	return instead(refusal, "give the output a file of its own");
}

/* `looks`: whether to look for what opening would find anyway, in the list of mounts too. */
static bool is_folder(const char *path, bool looks)
{
	struct stat stat;

	if (!path || !*path)
		return false;
	return path[strlen(path) - 1] == '/' || (looks && !stat_output(path, &stat) && S_ISDIR(stat.st_mode));
}

/* Refuses an output whose file another one before it has: they would tear each other's records, or one
 * replace the other's page. Several outputs may be stdout: see check_twice(). A folder is refused as opening
 * it would do. */
static int check_files(const struct request *request, size_t which, struct refusal *refusal)
{
	const char *path = request->outputs[which].path;

	if (path && request->config && is_same_file(path, request->config))
		return refuse_config(path, refusal);
	if (address_check_file("option --output", path, refusal))
		return -1;
	if (is_folder(path, request->check))
		return sink_refuse_path(refusal, path, EISDIR);
	for (size_t i = 0; i < which; i++) {
		const char *other = request->outputs[i].path;

		if ((!path && !other) || !is_of_files(other) || !is_same_file(path, other))
			continue;
		refuse(refusal, STATUS_USAGE, "option --output '%.300s'", path ? path : "-");
		because(refusal, "another output goes into the same file: '%.150s'", other ? other : "-");
		return instead(refusal, "give each output a file of its own");
	}
	return 0;
}

/* Refuses an output that would write records to stdout, an address or a URL that another one writes there in
 * the same format: who adds them up would count them twice. */
static int check_twice(const struct request *request, size_t which, struct refusal *refusal)
{
	const struct place_of_output *place = &request->outputs[which];

	for (size_t i = 0; i < which; i++) {
		if (!place_has_records_of(place, &request->outputs[i]))
			continue;
		refuse(refusal, STATUS_USAGE, "option --output '%.300s'", place->path ? place->path : "-");
		because(refusal, "another output writes the same records there");
		return instead(refusal,
			       "leave one out; outputs of a CONFIG can take other activities or types");
	}
	return 0;
}

static int check_place(const struct request *request, size_t which, struct refusal *refusal)
{
	const struct place_of_output *place = &request->outputs[which];

	if (is_scraped(place))
		return check_scraped(request, which, refusal);
	if (is_of_files(place->path) && check_files(request, which, refusal))
		return -1;
	return place->path && is_of_files(place->path) ? 0 : check_twice(request, which, refusal);
}

/* --- opening ---------------------------------------------------------------------------------- */

static int open_stream(const struct run *run, const struct request *request, size_t which,
		       struct stream *stream, struct refusal *refusal)
{
	const struct session *session = &run->session;
	/* With a single activity, its command decides about formats that are only for some commands. */
	const char *command = session->alone ? request->entries[0]->options.command->name : NULL;

	if (stream_open(stream, &request->outputs[which], command, refusal))
		return refused_at(run, refusal, "/outputs/%zu/path", which);
	stream->owner = session->alone ? request->entries[0]->name : SESSION;
	stream->verbose = request->verbose;
	stream->hints = session->alone && !request->quiet;
	stream->intervals = true;
	note("records go to %s as %s", stream->sink.path ? stream->sink.path : "stdout",
	     stream->format->name);
	return 0;
}

/* Refuses what is no place for an output, as opening it does: a socket, and for a page, which would take its
 * place, also a FIFO, a device or /dev/stdout. */
static int check_kind(const struct stream *stream, struct refusal *refusal)
{
	const char *path = stream->place.path;
	struct stat stat;

	if (!is_of_files(path) || documents_is_pattern(path) || stat_output(path, &stat))
		return 0;
	if (!stream_has_documents(stream))
		return S_ISSOCK(stat.st_mode) ? sink_refuse_path(refusal, path, EPROTOTYPE) : 0;
	return S_ISREG(stat.st_mode) && !documents_leads_into_proc(path)
		       ? 0
		       : sink_refuse_path(refusal, path, ENOTSUP);
}

/* With --check, records go to stdout, whatever the outputs are. Their formats decide what can be planned. */
static int foresee_streams(struct run *run, struct refusal *refusal)
{
	static struct place_of_output on_stdout = {.queue_bytes = QUEUE_BYTES};
	struct request *request = run->request;
	struct session *session = &run->session;
	struct request checked = *request;

	checked.outputs = &on_stdout;
	session->streams = xcalloc(request->nr_outputs + 1, sizeof(*session->streams));
	if (open_stream(run, &checked, 0, &session->streams[0], refusal))
		return -1;
	session->nr_streams = 1;
	for (size_t i = 0; i < request->nr_outputs; i++) {
		struct stream *stream = &session->streams[session->nr_streams];

		if (!check_place(request, i, refusal) &&
		    !stream_foresee(stream, &request->outputs[i], refusal)) {
			if (!check_kind(stream, refusal)) {
				session->nr_streams++;
				continue;
			}
			stream_release(stream);
		}
		refused_at(run, refusal, "/outputs/%zu/path", i);
		if (request_pass(request, refusal))
			return -1;
	}
	return 0;
}

void forget_foreseen(struct run *run)
{
	struct session *session = &run->session;

	while (session->nr_streams && session->streams[session->nr_streams - 1].foreseen)
		stream_release(&session->streams[--session->nr_streams]);
}

int open_streams(struct run *run, struct refusal *refusal)
{
	const struct request *request = run->request;
	struct session *session = &run->session;

	session->ready = on_output;
	if (request->check)
		return foresee_streams(run, refusal);
	session->streams = xcalloc(request->nr_outputs, sizeof(*session->streams));
	for (size_t i = 0; i < request->nr_outputs; i++) {
		struct stream *stream = &session->streams[i];
		const struct options *options = &request->entries[0]->options;

		if (check_place(request, i, refusal))
			return refused_at(run, refusal, "/outputs/%zu/path", i);
		if (open_stream(run, request, i, stream, refusal))
			return -1;
		session->nr_streams++;
		memcpy(stream->run_id, session->streams[0].run_id, sizeof(stream->run_id));
		stream->live = request->live;
		if (stream->live && check_live(stream, refusal))
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

/* A run ends with one refusal. If it has one already, what this stream could not write is said at once. */
static void close_stream(struct session *session, struct stream *stream, struct refusal *refusal)
{
	struct refusal further, *own = refusal->asked[0] ? &further : refusal;

	if (stream_close(stream) && stream->sink.error != EPIPE) {
		sink_refusal(&stream->sink, own);
		if (own != refusal)
			say_refusal(own);
	}
	session->stream_error = session->stream_error ? session->stream_error : stream->sink.error;
	stream_release(stream);
}

static size_t stream_at(const struct session *session, const struct place_of_output *place,
			const struct other_outputs *others)
{
	for (size_t i = 0; i < session->nr_streams; i++) {
		bool taken = false;

		for (size_t k = 0; k < others->nr; k++)
			taken = taken || others->going[k] == i;
		if (!taken && stream_is_at(&session->streams[i], place))
			return i;
	}
	return NOWHERE;
}

static void close_others(struct other_outputs *others)
{
	for (size_t i = 0; i < others->nr; i++) {
		if (others->going[i] != NOWHERE)
			continue;
		sink_keep_old(&others->streams[i].sink);
		stream_close(&others->streams[i]);
		stream_release(&others->streams[i]);
	}
	free(others->streams);
	free(others->going);
}

int open_other_outputs(const struct run *run, const struct request *request, struct other_outputs *others,
		       struct refusal *refusal)
{
	const struct session *session = &run->session;

	*others = (struct other_outputs){
		.streams = xcalloc(request->nr_outputs, sizeof(*others->streams)),
		.going = xcalloc(request->nr_outputs, sizeof(*others->going)),
	};
	for (size_t i = 0; i < request->nr_outputs; i++, others->nr++) {
		int err = check_place(request, i, refusal);

		if (err)
			refused_at(run, refusal, "/outputs/%zu/path", i);
		others->going[i] = stream_at(session, &request->outputs[i], others);
		if (!err && others->going[i] == NOWHERE)
			err = open_stream(run, request, i, &others->streams[i], refusal);
		if (err) {
			close_others(others);
			return -1;
		}
		memcpy(others->streams[i].run_id, session->streams[0].run_id,
		       sizeof(others->streams[i].run_id));
	}
	return 0;
}

/* --- outputs that are removed ----------------------------------------------------------------- */

/* A removed output is given up when nothing was taken from it for so long. */
#define LEAVE_NS      30000000000ULL
#define LEAVE_LOOK_NS 100000000ULL

/* Gives up the stream at this index. What still waits is told by the others. */
static void give_up_stream(struct run *run, size_t which)
{
	struct session *session = &run->session;
	struct stream *stream = &session->streams[which], gone;
	const struct sink *sink = &stream->sink;
	struct refusal ignored = {0};
	json_t *lost;

	session_unwatch(session, stream);
	lost = stream_lost(stream, sink->error	   ? strerror(sink->error)
				   : sink->stopped ? sink_why(sink)
						   : "its reader has not taken them");
	gone = *stream;
	session->nr_streams--;
	memmove(stream, stream + 1, (session->nr_streams - which) * sizeof(*stream));
	close_stream(session, &gone, &ignored);
	if (lost)
		write_own(run, lost);
}

/* Whether a removed stream need not be waited for any more. */
static bool has_left(struct stream *stream)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC);
	size_t left = sink_left(&stream->sink);

	if (left < stream->leaving.left) {
		stream->leaving.left = left;
		stream->leaving.until_ns = now + LEAVE_NS;
	}
	return !sink_has_left(&stream->sink) || stream->sink.error || now >= stream->leaving.until_ns;
}

static void on_leaving(void *context)
{
	struct run *run = context;
	struct session *session = &run->session;
	size_t nr = session->nr_streams;
	bool any = false;

	for (size_t i = nr; i--;) {
		struct stream *stream = &session->streams[i];

		if (!timespec_is_set(&stream->leaving.since))
			continue;
		if (has_left(stream))
			give_up_stream(run, i);
		else
			any = true;
	}
	if (!any)
		loop_remove(session->loop, &run->leaving);
	if (nr != session->nr_streams)
		flush(run);
}

static void leave_stream(struct stream *stream)
{
	stream->aside = true;
	if (timespec_is_set(&stream->leaving.since))
		return;
	stream->leaving = (struct leaving){
		.since = now_of(CLOCK_REALTIME),
		.until_ns = clock_ns(CLOCK_MONOTONIC) + LEAVE_NS,
		.left = sink_left(&stream->sink),
	};
}

/* The most streams that may be leaving at the same time, since each may have a full queue. */
#define LEAVING_MOST 16

static void limit_leaving(struct run *run, size_t nr_outputs)
{
	struct session *session = &run->session;

	/* Those that have left earlier come last. */
	while (session->nr_streams > nr_outputs + LEAVING_MOST)
		give_up_stream(run, session->nr_streams - 1);
}

/* --- other outputs take their places ---------------------------------------------------------- */

static bool goes_on(const struct other_outputs *others, size_t stream)
{
	for (size_t i = 0; i < others->nr; i++)
		if (others->going[i] == stream)
			return true;
	return false;
}

static bool is_unchanged(const struct stream *stream, const struct place_of_output *place)
{
	return !timespec_is_set(&stream->leaving.since) && place_is_same(&stream->place, place);
}

/* Ends the streams whose outputs were removed or changed. */
static void end_streams(struct run *run, const struct request *request, const struct other_outputs *others)
{
	struct session *session = &run->session;

	for (size_t i = 0; i < session->nr_streams; i++) {
		struct stream *stream = &session->streams[i];
		bool stays = timespec_is_set(&stream->leaving.since);

		for (size_t k = 0; k < others->nr; k++)
			stays = stays ||
				(others->going[k] == i && is_unchanged(stream, &request->outputs[k]));
		if (!stays)
			write_stream_end(run, stream);
	}
}

/* Puts the stream for an output in its place. Returns whether it begins, and needs start records. */
static bool place_stream(struct run *run, const struct place_of_output *place, struct stream *stream,
			 struct stream *before, size_t going)
{
	bool begins = going == NOWHERE || !is_unchanged(&before[going], place);

	if (going != NOWHERE)
		*stream = before[going];
	if (going != NOWHERE && begins)
		stream_replace(stream, place);
	if (begins)
		share_queue(run, &stream->sink);
	stream->silent_since_ns = clock_ns(CLOCK_MONOTONIC);
	sink_reopen(&stream->sink);
	sink_renew_access(&stream->sink, &place->access);
	stream->aside = !begins; /* until the start records are written */
	return begins;
}

void take_other_outputs(struct run *run, const struct request *request, struct other_outputs *others)
{
	struct session *session = &run->session;
	struct stream *before = session->streams, *streams;
	size_t nr_before = session->nr_streams, nr = 0;
	bool begins = false;

	unwatch_outputs(run);
	end_streams(run, request, others);
	streams = xcalloc(others->nr + nr_before, sizeof(*streams));
	for (; nr < others->nr; nr++) {
		streams[nr] = others->streams[nr];
		begins = place_stream(run, &request->outputs[nr], &streams[nr], before, others->going[nr]) ||
			 begins;
		for (size_t i = 0; others->going[nr] == NOWHERE && i < nr_before; i++)
			if (!goes_on(others, i))
				stream_succeed(&streams[nr], &before[i]);
	}
	for (size_t i = 0; i < nr_before; i++) {
		if (goes_on(others, i))
			continue;
		leave_stream(&before[i]);
		streams[nr++] = before[i];
	}
	session->streams = streams;
	session->nr_streams = nr;
	if (begins)
		write_starts_again(run);
	for (size_t i = 0; i < others->nr; i++)
		streams[i].aside = false;
	limit_leaving(run, others->nr);
	if (session->nr_streams > others->nr && !run->leaving)
		run->leaving =
			loop_every(session->loop, clock_ns(CLOCK_MONOTONIC), LEAVE_LOOK_NS, on_leaving, run);
	watch_outputs(run);
	free(before);
	free(others->streams);
	free(others->going);
}

/* The run was refused: files stay as they were. */
void keep_old_files(struct run *run)
{
	for (size_t i = 0; i < run->session.nr_streams; i++)
		sink_keep_old(&run->session.streams[i].sink);
}

void close_streams(struct run *run, struct refusal *refusal)
{
	struct session *session = &run->session;

	privileges_lower(); /* a file may be removed */
	for (size_t i = 0; i < session->nr_streams; i++)
		close_stream(session, &session->streams[i], refusal);
	free(session->streams);
	session->streams = NULL;
	session->nr_streams = 0;
}
