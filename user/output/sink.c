// SPDX-License-Identifier: GPL-2.0-only
#include "output/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/local.h"
#include "base/memory.h"
#include "base/zstd.h"
#include "output/address.h"
#include "output/documents.h"
#include "output/packer.h"
#include "output/push.h"
#include "output/torn.h"

#define FLUSH_AT     65536
#define FLUSH_NS     200000000ULL
#define LAST_WORD_NS 2000000000ULL

/* --- opening ---------------------------------------------------------------------------------- */

/* Records hold addresses and command lines, so files are not readable by other users. O_APPEND: after another
 * program has truncated the file (logrotate's copytruncate), writing continues at its new end. */
static int open_file(const char *path, int flags)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | flags, 0640);
	struct stat stat_of;

	/* ENXIO is also what a socket, or a device that is not there, answers: only a FIFO may get a reader.
	 */
	if (fd < 0 && errno == ENXIO && !stat(path, &stat_of) && !S_ISFIFO(stat_of.st_mode))
		errno = S_ISSOCK(stat_of.st_mode) ? EPROTOTYPE : ENODEV;
	return fd;
}

/* Makes the file if there is none, and remembers which one was made. */
static int make_file(struct sink *sink, int flags)
{
	int fd = open_file(sink->path, flags);
	struct stat stat;

	if (fd >= 0 || errno != ENOENT)
		return fd;
	fd = open_file(sink->path, O_CREAT | O_EXCL | flags);
	if (fd >= 0 && !fstat(fd, &stat)) {
		sink->made_on = stat.st_dev;
		sink->made = stat.st_ino;
	}
	/* Another program may have made it by now, or a link leads nowhere yet. */
	return fd >= 0 || errno != EEXIST ? fd : open_file(sink->path, O_CREAT | flags);
}

/* Removes the file that was made for a run that was refused, if it is empty. */
static void remove_made(const struct sink *sink)
{
	struct stat stat;

	if (sink->needless && sink->made && !lstat(sink->path, &stat) && stat.st_dev == sink->made_on &&
	    stat.st_ino == sink->made && S_ISREG(stat.st_mode) && !stat.st_size)
		unlink(sink->path);
}

int sink_unwaiting(int fd)
{
	struct stat stat;
	char path[40];

	if (fstat(fd, &stat) || (!S_ISFIFO(stat.st_mode) && !isatty(fd)))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

/* Opens stdout anew if possible: its open file description, and so the flag O_NONBLOCK, is shared with the
 * shell and with COMMAND. */
static void take_stdout(struct sink *sink)
{
	int own = sink_unwaiting(STDOUT_FILENO);

	sink->fd = own >= 0 ? own : STDOUT_FILENO;
	sink->lent = own < 0;
}

static void look_at_kind(struct sink *sink)
{
	struct stat stat = {0};

	fstat(sink->fd, &stat);
	sink->terminal = isatty(sink->fd);
	sink->regular = S_ISREG(stat.st_mode);
	sink->socket = S_ISSOCK(stat.st_mode);
	sink->lent = sink->lent && (S_ISFIFO(stat.st_mode) || sink->terminal);
	if (sink->path && !sink->regular)
		fcntl(sink->fd, F_SETFL, fcntl(sink->fd, F_GETFL) | O_NONBLOCK);
}

/*
 * Exceeding the limit of a file's size (RLIMIT_FSIZE) shall be an error like any other: EFBIG, not SIGXFSZ.
 */
static void block_size_signal(void)
{
	sigset_t size;

	sigemptyset(&size);
	sigaddset(&size, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &size, NULL);
}

/* Errors that may pass: somebody may free space, or truncate the file. */
static bool is_full(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

static const char no_file[] = "only a file can be replaced as a whole, and this is none";

/* What cannot be written to whatever its permissions. */
static const struct {
	int error;
	const char *why, *remedy;
} no_places[] = {
	{ENOTSUP, no_file, "the name of a file, or - for stdout"},
	{EISDIR, "it is a folder", "add the name of a file"},
	{EPROTOTYPE, "it is a socket", "write unix: before its path"},
	{ENODEV, "there is no such device, or no terminal", "the name of a file, or - for stdout"},
};

int sink_refuse_path(struct refusal *refusal, const char *path, int error)
{
	refuse(refusal, STATUS_USAGE, "option --output '%s'", path);
	refusal->error = error;
	for (size_t i = 0; i < ARRAY_SIZE(no_places); i++) {
		if (no_places[i].error == error) {
			because(refusal, "%s", no_places[i].why);
			return instead(refusal, "%s", no_places[i].remedy);
		}
	}
	because(refusal, "it can't be written: %s", strerror(error));
	return instead(refusal, "check the folder and its permissions");
}

/* --- by another process ----------------------------------------------------------------------- */

/* How long to wait for the file system at the start, and when the file is opened again, which is tried at
 * most so often. */
#define OPEN_NS	 1000000000ULL
#define AGAIN_NS 100000000ULL
#define LATE_NS	 2000000000ULL

static __u64 late_ns; /* when a file system last did not answer at the start, CLOCK_MONOTONIC */

/* Several outputs on a file system that does not answer hold up the start once. */
static __u64 first_wait_ns(void)
{
	return late_ns && clock_ns(CLOCK_MONOTONIC) - late_ns < LATE_NS ? AGAIN_NS : OPEN_NS;
}

static void note_late(bool late)
{
	if (late)
		late_ns = clock_ns(CLOCK_MONOTONIC);
}

static void take_open(struct sink *sink, const struct scribe_done *done, int fd)
{
	if (sink->fd >= 0 && sink->fd != fd)
		close(sink->fd);
	sink->fd = fd;
	sink->regular = true;
	sink->old = done->old;
	sink->unopened = false;
	queue_rewind(&sink->queue);
	if (fd >= 0)
		look_at_kind(sink);
}

/* The end of SCRIBE_OPEN. A process that is not needed, or has failed, ends: the place may be another one at
 * the next try. */
static void on_opened(struct sink *sink, const struct scribe_done *done, int fd)
{
	if (done->error)
		sink->stopped = done->error;
	else
		take_open(sink, done, fd);
	if (!done->error && fd < 0)
		return;
	scribe_end(sink->scribe);
	sink->scribe = NULL;
}

/* The file system's server is away, or a file that was opened is of no use any more. */
static void lose_file(struct sink *sink, int error)
{
	sink->unopened = true;
	sink->stopped = error;
}

static void on_put(struct sink *sink, const struct scribe_done *done)
{
	struct queue *queue = &sink->queue;
	size_t written = done->written < queue->nr ? done->written : queue->nr;

	if (written)
		queue_advance(queue, queue->ends[written - 1] - queue->done);
	sink->begun = sink->begun || written;
	if (done->error && done->error != EAGAIN && !sink->most)
		sink->error = done->error;
	else if (!done->error || is_full(done->error) || done->error == EAGAIN)
		sink->stopped = done->error;
	else
		lose_file(sink, done->error);
}

static void on_document(struct sink *sink, const struct scribe_done *done)
{
	sink->stopped = done->error;
	if (!done->error)
		documents_pop(sink->documents);
}

/* Some file systems report only at close(2) that the disk is full. */
static void on_closed(struct sink *sink, const struct scribe_done *done)
{
	sink->closed = true;
	sink->error = sink->error ? sink->error : done->error;
}

/* Takes the end of the job that is under way, if it comes until the deadline. Returns whether the scribe, if
 * there still is one, can be given another job. */
static bool take_done(struct sink *sink, __u64 deadline)
{
	enum scribe_job job = scribe_busy(sink->scribe);
	struct scribe_done done;
	int fd, err;

	if (!job)
		return true;
	err = scribe_take(sink->scribe, &done, &fd, deadline);
	if (err == ETIMEDOUT) {
		if (scribe_is_late(sink->scribe))
			sink->stopped = ETIMEDOUT;
		return false;
	}
	if (err) {
		scribe_end(sink->scribe);
		sink->scribe = NULL;
		lose_file(sink, err);
		return false;
	}
	sink->stopped = 0;
	if (job == SCRIBE_OPEN)
		on_opened(sink, &done, fd);
	else if (job == SCRIBE_PUT)
		on_put(sink, &done);
	else if (job == SCRIBE_DOCUMENT)
		on_document(sink, &done);
	else if (job == SCRIBE_CLOSE)
		on_closed(sink, &done);
	return true;
}

static struct scribe *scribe_of(const struct sink *sink, int kept)
{
	return scribe_start(sink->serve, &(struct scribe_place){.path = sink->path, .kept = kept});
}

/* Has a process open the file, now or later. Returns 0; or an errno if it can't be opened. */
static int open_apart(struct sink *sink, __u64 wait_ns)
{
	int err;

	sink->unopened = true;
	if (!take_done(sink, 0) || !sink->scribe || !sink->unopened)
		return 0;
	err = scribe_ask(sink->scribe, SCRIBE_OPEN, sink->begun);
	if (err)
		sink->stopped = err;
	else if (!take_done(sink, clock_ns(CLOCK_MONOTONIC) + wait_ns) && sink->scribe)
		sink->stopped = ETIMEDOUT;
	return sink->unopened && sink->stopped != ETIMEDOUT && sink->stopped != ENXIO ? sink->stopped : 0;
}

/* Whether a process takes over what would wait for a server. Without one, it is done here. */
static bool leave_to_scribe(struct sink *sink)
{
	if (!sink->scribe && sink->serve && !local_place(sink->path))
		sink->scribe = scribe_of(sink, -1);
	return sink->scribe;
}

/* Leaves stdout to a process if it is a file behind a server. */
static void leave_stdout(struct sink *sink)
{
	if (sink->serve && sink->regular && !local_is_known(sink->fd))
		sink->scribe = scribe_of(sink, sink->fd);
}

/* Documents that the next one would replace at once are dropped. */
static int ask_for_document(struct sink *sink)
{
	struct documents *documents = sink->documents;

	while (documents->first && documents->first->next && !documents_is_pattern(documents->path))
		documents_pop(documents);
	return documents->first ? scribe_write(sink->scribe, documents->first) : 0;
}

static int ask_for_more(struct sink *sink)
{
	if (sink->documents)
		return ask_for_document(sink);
	if (queue_waiting(&sink->queue))
		return scribe_put(sink->scribe, &sink->queue, sink->begun);
	if (sink->ending && !sink->closed)
		return scribe_ask(sink->scribe, SCRIBE_CLOSE, true);
	return 0;
}

static int flush_apart(struct sink *sink)
{
	int err;

	if (!take_done(sink, 0) || !sink->scribe || sink->unopened || sink->error)
		return -sink->error;
	err = ask_for_more(sink);
	if (err)
		lose_file(sink, err);
	return 0;
}

/* Has what is written to a file FILE.zst compressed. Returns 0, or an errno. */
static int begin_packing(struct sink *sink)
{
	struct stat stat = {0};
	int fd;

	if (!zstd_is_name(sink->path))
		return 0;
	fstat(sink->fd, &stat);
	sink->old = S_ISREG(stat.st_mode) && stat.st_size;
	fd = packer_start(&sink->packer, sink->fd, sink->append);
	if (fd < 0)
		return errno;
	sink->fd = fd;
	if (sink->of_bytes)
		packer_take_bytes(sink->packer);
	return 0;
}

void sink_take_bytes(struct sink *sink)
{
	sink->of_bytes = true;
	if (sink->packer)
		packer_take_bytes(sink->packer);
}

static int open_here(struct sink *sink, bool later)
{
	int err;

	sink->fd = make_file(sink, later ? O_NONBLOCK : 0);
	if (sink->fd < 0 && later && errno == ENXIO) {
		sink->unopened = true;
		sink->stopped = ENXIO;
		return 0;
	}
	if (sink->fd < 0)
		return errno;
	err = begin_packing(sink);
	look_at_kind(sink);
	return err;
}

int sink_check_path(const char *path, bool documents, struct refusal *refusal)
{
	if (!zstd_is_name(path))
		return 0;
	if (!documents)
		return zstd_need("option --output", path, refusal);
	refuse(refusal, STATUS_USAGE, "option --output '%s'", path);
	because(refusal, "only a file that holds the whole run is compressed");
	return instead(refusal, "leave out .zst, or %% in the name");
}

int sink_open(struct sink *sink, const char *path, bool append, bool later, scribe_fn serve,
	      struct refusal *refusal)
{
	int error;

	*sink = (struct sink){
		.fd = -1, .path = path, .append = append, .begun = append || !path, .serve = serve};
	block_size_signal();
	if (sink_check_path(path, false, refusal))
		return -1;
	if (zstd_is_name(path))
		sink->serve = NULL; /* its own thread waits for the file system */
	if (!path) {
		take_stdout(sink);
		look_at_kind(sink);
		leave_stdout(sink);
		return 0;
	}
	error = leave_to_scribe(sink) ? open_apart(sink, first_wait_ns()) : open_here(sink, later);
	note_late(sink->stopped == ETIMEDOUT);
	return error ? sink_refuse_path(refusal, path, error) : 0;
}

/* --- documents -------------------------------------------------------------------------------- */

static int open_documents_here(struct sink *sink)
{
	return -documents_open(sink->documents, sink->path);
}

/* Has a process check that documents can be created. Returns 0, also if that is not known yet; or an errno.
 */
static int try_apart(struct sink *sink)
{
	struct scribe_done done;
	int fd, err = scribe_ask(sink->scribe, SCRIBE_TRY, true);

	documents_begin(sink->documents, sink->path);
	if (!err)
		err = scribe_take(sink->scribe, &done, &fd, clock_ns(CLOCK_MONOTONIC) + first_wait_ns());
	note_late(err == ETIMEDOUT);
	if (err == ETIMEDOUT || (!err && !done.error && !done.local))
		return 0;
	scribe_end(sink->scribe);
	sink->scribe = NULL;
	return err ? err : done.error;
}

int sink_open_documents(struct sink *sink, const char *path, scribe_fn serve, struct refusal *refusal)
{
	int err;

	*sink = (struct sink){.fd = -1, .path = path, .serve = serve};
	block_size_signal();
	if (sink_check_path(path, true, refusal))
		return -1;
	sink->documents = xcalloc(1, sizeof(*sink->documents));
	err = leave_to_scribe(sink) ? try_apart(sink) : open_documents_here(sink);
	if (!err)
		return 0;
	free(sink->documents);
	sink->documents = NULL;
	return sink_refuse_path(refusal, path, err);
}

int sink_open_push(struct sink *sink, const char *url, struct document_kind kind,
		   const struct push_access *access, struct refusal *refusal)
{
	*sink = (struct sink){.fd = -1, .path = url};
	sink->push = pusher.open(url, kind, access, refusal);
	if (!sink->push)
		return -1;
	sink->documents = xcalloc(1, sizeof(*sink->documents));
	documents_begin(sink->documents, url);
	sink->fd = pusher.fd(sink->push);
	return 0;
}

void sink_renew_access(struct sink *sink, const struct push_access *access)
{
	if (sink->push)
		pusher.renew(sink->push, access);
}

/* Whether the first document is on its way, and has to stay. */
static bool is_first_taken(const struct sink *sink)
{
	if (sink->scribe)
		return scribe_busy(sink->scribe) == SCRIBE_DOCUMENT;
	return sink->push && pusher.is_busy(sink->push);
}

/* The records of the queue that are not completely written. */
static unsigned long long records_in(const struct sink *sink, const struct queue *queue)
{
	return sink->rows ? sink->rows(queue_unwritten(queue), queue_left(queue)) : queue->nr;
}

bool sink_cut(struct sink *sink, const struct timespec *since, const struct timespec *until)
{
	struct queue *queue = &sink->queue;
	struct document document = {
		.bytes = queue->bytes,
		.size = queue->used,
		.records = records_in(sink, queue) + sink->missed,
		.missed = sink->missed,
		.since = *since,
		.until = *until,
	};

	if (!sink->documents || !queue->used)
		return false;
	documents_add(sink->documents, &document, sink->most, is_first_taken(sink));
	sink->cut_try = sink->push ? pusher.tries(sink->push) : 0;
	sink->missed = 0;
	queue_clear(queue);
	return true;
}

unsigned long long sink_take_dropped(struct sink *sink)
{
	unsigned long long dropped = sink->documents ? sink->documents->dropped : 0;

	if (dropped)
		sink->documents->dropped = 0;
	return dropped;
}

bool sink_is_remote(const struct sink *sink)
{
	return sink->address || sink->push || sink->scribe;
}

static bool is_closing(const struct sink *sink)
{
	return sink->scribe && sink->ending && !sink->closed && !sink->documents;
}

bool sink_has_left(const struct sink *sink)
{
	return queue_waiting(&sink->queue) || (sink->documents && sink->documents->first) || is_closing(sink);
}

void sink_end(struct sink *sink)
{
	sink->ending = true;
	if (!sink->address)
		sink->again_ns = 0;
}

bool sink_is_busy(const struct sink *sink)
{
	return sink->scribe && scribe_busy(sink->scribe);
}

int sink_awaited(const struct sink *sink)
{
	return sink->scribe ? scribe_fd(sink->scribe) : sink->fd;
}

short sink_events(const struct sink *sink)
{
	if (sink->push || sink->scribe)
		return POLLIN;
	/* POLLERR, by which a pipe reports that its reader is gone, is always polled for. */
	return (sink->address ? POLLRDHUP : 0) | (sink_waits(sink) ? POLLOUT : 0);
}

bool sink_is_file(const struct sink *sink)
{
	return sink->path && !sink->address && !sink->documents &&
	       (sink->fd >= 0 || sink->unopened || sink->scribe);
}

/* --- connections ------------------------------------------------------------------------------ */

static void connect_within(struct sink *sink, __u64 wait_ns)
{
	sink->lost = false;
	sink->fd = address_join(sink->address, &sink->joining, wait_ns);
	if (sink->fd < 0)
		sink_lose(sink, errno);
}

int sink_open_address(struct sink *sink, const char *place, struct refusal *refusal)
{
	struct address address;

	*sink = (struct sink){.fd = -1, .path = place, .append = true, .begun = true, .socket = true};
	if (address_read(&address, "option --output", place, refusal))
		return -1;
	sink->address = xmalloc(sizeof(address));
	*sink->address = address;
	connect_within(sink, first_wait_ns());
	note_late(sink->joining);
	return 0;
}

bool sink_wants_connection(const struct sink *sink)
{
	return sink->address && sink->fd < 0 && clock_ns(CLOCK_MONOTONIC) >= sink->again_ns;
}

void sink_lose(struct sink *sink, int error)
{
	if (sink->lost)
		return;
	sink->lost = true;
	sink->stopped = error ? error : ECONNRESET;
	sink->pause_ns = pause_after(sink->pause_ns);
	sink->again_ns = clock_ns(CLOCK_MONOTONIC) + sink->pause_ns;
}

void sink_hang_up(struct sink *sink)
{
	if (sink->fd >= 0)
		close(sink->fd);
	sink->fd = -1;
	queue_rewind(&sink->queue);
}

void sink_connect(struct sink *sink)
{
	connect_within(sink, AGAIN_NS);
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Truncates the file to remove the part of a record that was written, unless another program has appended to
 * the file since. */
void sink_take_back(struct sink *sink)
{
	off_t end = sink->regular ? lseek(sink->fd, 0, SEEK_CUR) : -1, torn = queue_torn(&sink->queue);
	struct stat stat;

	if (torn && end >= torn && !fstat(sink->fd, &stat) && stat.st_size == end &&
	    !ftruncate(sink->fd, end - torn))
		lseek(sink->fd, end - torn, SEEK_SET);
	if (sink->regular)
		queue_rewind(&sink->queue);
}

static int failed(struct sink *sink, int error)
{
	sink->error = error;
	sink_take_back(sink);
	return -error;
}

/* Errors that pass without a notice. A file system's server may refuse a write for a moment, and epoll does
 * not watch files. */
static bool will_pass(const struct sink *sink, int error)
{
	return sink->most && (is_full(error) || (error == EAGAIN && sink->regular));
}

/* Writes at most as much as a writable pipe takes without blocking. If another process fills the pipe first,
 * the write blocks after all. */
static ssize_t write_where_room_is(int fd, const char *text, size_t size)
{
	struct pollfd room = {.fd = fd, .events = POLLOUT};

	if (poll(&room, 1, 0) <= 0) {
		errno = EAGAIN;
		return -1;
	}
	return write(fd, text, size < PIPE_BUF ? size : PIPE_BUF);
}

static ssize_t write_some(struct sink *sink, const char *text, size_t size)
{
	if (sink->socket)
		return send(sink->fd, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sink->lent && sink->most)
		return write_where_room_is(sink->fd, text, size);
	return write(sink->fd, text, size);
}

/* Truncates the file before the first write, unless it is to be kept. Fails on pipes and devices, which can't
 * be truncated; that is ignored. */
static int begin_file(struct sink *sink)
{
	if (!sink->begun && ftruncate(sink->fd, 0) && errno != EINVAL)
		return failed(sink, errno);
	if (!sink->looked && sink->path && sink->regular && !sink->of_bytes)
		torn_record_remove(sink->fd);
	sink->begun = sink->looked = true;
	return 0;
}

static int flush_documents(struct sink *sink)
{
	if (sink->push) {
		sink->stopped = pusher.step(sink->push, sink->documents);
		return 0;
	}
	while (sink->documents->first) {
		sink->stopped = -documents_write(sink->documents);
		if (sink->stopped)
			return 0;
		documents_pop(sink->documents);
	}
	return 0;
}

int sink_why_unread(const struct sink *sink)
{
	int error = sink->packer ? packer_error(sink->packer) : 0;

	return error ? error : EPIPE;
}

int sink_flush(struct sink *sink)
{
	struct queue *queue = &sink->queue;

	if (sink->error)
		return -sink->error;
	if (sink->scribe)
		return flush_apart(sink);
	if (sink->documents)
		return flush_documents(sink);
	if (sink->packer && !sink->unopened)
		sink->stopped = packer_stopped(sink->packer);
	if (!queue_waiting(queue) || sink->fd < 0 || sink->lost || sink->unopened)
		return 0;
	if (begin_file(sink))
		return -sink->error;
	while (queue_waiting(queue)) {
		ssize_t n = write_some(sink, queue_next(queue), queue_waiting(queue));

		if (n > 0) {
			sink->stopped = sink->packer ? packer_stopped(sink->packer) : 0;
			sink->pause_ns = 0;
			queue_advance(queue, n);
		} else if (n && will_pass(sink, errno)) {
			sink->stopped = errno;
			return 0;
		} else if (!n || errno == EAGAIN) {
			return 0;
		} else if (sink->address && errno != EINTR) {
			sink_lose(sink, errno);
			return 0;
		} else if (errno != EINTR) {
			return failed(sink, errno == EPIPE ? sink_why_unread(sink) : errno);
		}
	}
	return 0;
}

/* Whether it is a FIFO that nobody has open for reading. */
static bool is_unread(const struct sink *sink)
{
	return sink->unopened && sink->stopped == ENXIO;
}

bool sink_waits(const struct sink *sink)
{
	bool files = sink->documents && !sink_is_remote(sink), left = !files && sink_has_left(sink);

	return left && !sink->error && (!sink->stopped || sink_is_remote(sink) || is_unread(sink));
}

bool sink_wants_document(const struct sink *sink, unsigned int times)
{
	return !sink->push || times > 1 || !sink->documents->full ||
	       pusher.tries(sink->push) != sink->cut_try;
}

unsigned int sink_filled(const struct sink *sink, unsigned int of)
{
	size_t parts = sink->most && !sink->documents ? queue_waiting(&sink->queue) * of / sink->most : 0;

	return parts < of ? parts : of;
}

int sink_finish(struct sink *sink, unsigned long long until_ns)
{
	while (!sink_flush(sink) && sink_waits(sink)) {
		struct pollfd room = {.fd = sink_awaited(sink), .events = sink_events(sink)};
		unsigned long long now = clock_ns(CLOCK_MONOTONIC);

		if (now >= until_ns)
			break;
		poll(&room, 1, until_ns == ~0ULL ? -1 : (int)((until_ns - now) / 1000000) + 1);
	}
	return -sink->error;
}

static int finish_much(struct sink *sink)
{
	return !sink->most && queue_waiting(&sink->queue) >= FLUSH_AT ? sink_finish(sink, ~0ULL) : 0;
}

int sink_put(struct sink *sink, const char *text, size_t size)
{
	if (sink->error)
		return -sink->error;
	sink->bytes += size;
	queue_add(&sink->queue, text, size);
	return finish_much(sink);
}

struct compact sink_lend(struct sink *sink, size_t size)
{
	return queue_lend(&sink->queue, size);
}

int sink_take(struct sink *sink, const struct compact *lent)
{
	if (sink->error) {
		queue_take_unchanged(&sink->queue, lent);
		return -sink->error;
	}
	sink->bytes += lent->used - sink->queue.used;
	queue_take(&sink->queue, lent);
	return finish_much(sink);
}

bool sink_is_due(struct sink *sink, unsigned long long *due_ns)
{
	unsigned long long now, due = sink->flushed_ns + FLUSH_NS;

	if (!sink->regular || !queue_waiting(&sink->queue))
		return true;
	now = clock_ns(CLOCK_MONOTONIC);
	if (now < due) {
		*due_ns = due < *due_ns ? due : *due_ns;
		return false;
	}
	sink->flushed_ns = now;
	return true;
}

int sink_put_last(struct sink *sink, const char *text, size_t size)
{
	unsigned long long until = clock_ns(CLOCK_MONOTONIC) + LAST_WORD_NS;

	if (sink->documents || sink->scribe)
		return 0; /* memory would have to be allocated for it */
	if (sink_finish(sink, until) || queue_waiting(&sink->queue))
		return sink->error ? -sink->error : -EAGAIN;
	/* The queue is empty. It borrows the text, which is not allocated; its own buffer is not needed any
	 * more. */
	sink->queue = (struct queue){.bytes = (char *)text, .used = size, .ends = &size, .nr = 1};
	return sink_finish(sink, until);
}

bool sink_is_away(const struct sink *sink)
{
	return sink->push ? sink->stopped : sink->unopened || (sink->address && sink->fd < 0);
}

bool sink_opens(const struct sink *sink)
{
	return sink->documents && !sink->push && sink->documents->first;
}

const char *sink_cause(const struct sink *sink)
{
	if (sink->address || sink->push)
		return "disconnected";
	if (sink->stopped == ETIMEDOUT)
		return "stalled";
	return is_full(sink->stopped) || sink->stopped == EAGAIN ? "disk_full" : "unopened";
}

const char *sink_why(const struct sink *sink)
{
	if (sink->push)
		return pusher.why(sink->push);
	if ((sink->scribe || sink->joining) && sink->stopped == ETIMEDOUT)
		return "its file system does not answer";
	if (sink->documents && sink->stopped == ENOTSUP)
		return no_file;
	return is_unread(sink) ? "nobody has this FIFO open for reading" : strerror(sink->stopped);
}

unsigned long long sink_records(const struct sink *sink)
{
	const struct document *each = sink->documents ? sink->documents->first : NULL;
	unsigned long long records = records_in(sink, &sink->queue);

	for (; each; each = each->next)
		records += each->records;
	return records;
}

size_t sink_left(const struct sink *sink)
{
	return queue_waiting(&sink->queue) + (sink->documents ? sink->documents->bytes : 0);
}

/* --- other files ------------------------------------------------------------------------------ */

static bool is_same_file(int a, int b)
{
	struct stat first, second;

	return !fstat(a, &first) && !fstat(b, &second) && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

/* The file that is behind the descriptor. */
static int file_of(const struct sink *sink)
{
	return sink->packer ? packer_file(sink->packer) : sink->fd;
}

static void open_again_here(struct sink *sink)
{
	int fd = open_file(sink->path, O_CREAT | O_NONBLOCK), to;

	if (fd < 0) {
		sink->stopped = errno;
		return;
	}
	if (is_same_file(fd, file_of(sink))) {
		close(fd);
	} else if (sink->packer && !packer_error(sink->packer)) {
		to = packer_turn(sink->packer, fd, sink->fd);
		if (to < 0) {
			sink->stopped = errno;
			close(fd);
			return;
		}
		sink->fd = to;
	} else {
		sink_take_back(sink);
		if (sink->fd >= 0)
			close(sink->fd);
		packer_end(sink->packer);
		sink->packer = NULL;
		sink->fd = fd;
		sink->append = true;
		sink->looked = false;
		begin_packing(sink);
		look_at_kind(sink);
	}
	sink->unopened = false;
	sink->append = sink->begun = true;
	sink->stopped = 0;
}

/* A process that writes documents has ended. */
static void write_again(struct sink *sink)
{
	sink->scribe = scribe_of(sink, -1);
	sink->unopened = !sink->scribe;
	sink->stopped = sink->scribe ? 0 : errno;
}

/* Each try looks the path up and reads the mount table. With samples as records it would come with each
 * flush, hundreds of times a second, and a file system that is looked up that often can't be unmounted. */
void sink_open_again(struct sink *sink)
{
	bool busy = sink->scribe && scribe_busy(sink->scribe);

	if (!busy && clock_ns(CLOCK_MONOTONIC) < sink->again_ns)
		return;
	if (sink->documents)
		write_again(sink);
	else if (leave_to_scribe(sink))
		open_apart(sink, AGAIN_NS);
	else
		open_again_here(sink);
	if (!busy)
		sink->again_ns = clock_ns(CLOCK_MONOTONIC) + AGAIN_NS;
}

void sink_reopen(struct sink *sink)
{
	if (!sink_is_file(sink))
		return;
	sink_flush(sink);
	if (sink->scribe)
		sink->append = sink->begun = sink->begun || !sink->unopened;
	sink->unopened = true;
	sink->error = 0;
	sink->again_ns = 0;
	sink_open_again(sink);
}

/* The run ends, and the path could not be opened again. If the former file still has a name, as after a
 * rename by logrotate, the rest is better there than nowhere. */
static void take_former_file(struct sink *sink)
{
	struct stat stat;

	if (!sink->unopened || sink->fd < 0 || fstat(file_of(sink), &stat) || !stat.st_nlink)
		return;
	sink->unopened = false;
	sink->stopped = 0;
}

void sink_keep_old(struct sink *sink)
{
	struct stat stat;

	bool old = sink->scribe || sink->packer ? sink->old : !fstat(sink->fd, &stat) && stat.st_size;

	sink->needless = true;

	if (sink->documents || (!sink->begun && old))
		queue_clear(&sink->queue);
}

void sink_give_up(struct sink *sink)
{
	snprintf(sink->told, sizeof(sink->told), "%s", sink_why(sink));
	failed(sink, sink->stopped);
}

/* A run that has written nothing, such as stacks of no samples, leaves nothing of the one before it either.
 */
static void begin_at_last(struct sink *sink)
{
	if (sink->needless || sink->error || sink->fd < 0 || sink->documents || sink->unopened)
		return;
	if (sink->packer)
		packer_begin(sink->packer);
	begin_file(sink);
}

int sink_close(struct sink *sink)
{
	int packed;

	take_former_file(sink);
	sink->ending = sink->ending || !sink->most;
	sink_finish(sink, sink->most ? 0 : ~0ULL);
	if (sink_has_left(sink) && !sink->error) {
		sink->why = sink->stopped ? NULL : "its reader has not taken the last records";
		if (sink->stopped)
			sink_give_up(sink);
		else
			failed(sink, ETIMEDOUT);
	}
	/* What was refused is told by the next document. There is no next one. */
	if (sink->push && sink->documents->dropped && !sink->error) {
		sink->why = "the server has refused the last records";
		failed(sink, EREMOTEIO);
	}
	if (sink->push) {
		pusher.close(sink->push); /* its descriptor is closed by this */
		sink->push = NULL;
		sink->fd = -1;
	}
	begin_at_last(sink);
	scribe_end(sink->scribe);
	sink->scribe = NULL;
	/* Some file systems report only at close(2) that the disk is full. */
	if (sink->fd > STDERR_FILENO && close(sink->fd) && !sink->error)
		sink->error = errno;
	sink->fd = -1;
	packed = packer_end(sink->packer);
	sink->packer = NULL;
	sink->error = sink->error ? sink->error : packed;
	remove_made(sink);
	queue_release(&sink->queue);
	address_part(sink->joining);
	sink->joining = NULL;
	free(sink->address);
	sink->address = NULL;
	if (sink->documents)
		documents_release(sink->documents);
	free(sink->documents);
	sink->documents = NULL;
	return -sink->error;
}

void sink_forget(struct sink *sink)
{
	queue_clear(&sink->queue);
	sink->error = sink->stopped = 0;
}

int sink_refusal(const struct sink *sink, struct refusal *refusal)
{
	refuse(refusal, STATUS_PARTIAL, "writing to %s", sink->path ? sink->path : "stdout");
	refusal->error = sink->error;
	if (sink->why)
		return because(refusal, "%s", sink->why);
	because(refusal, "%s; the records end before the run does",
		sink->told[0] ? sink->told : strerror(sink->error));
	return instead(refusal, sink->error == ENOSPC || sink->error == EDQUOT
					? "make room, or write to another file system"
					: "");
}
