// SPDX-License-Identifier: GPL-2.0-only
#include "output/packer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/readable.h"
#include "base/thread.h"
#include "base/zstd.h"
#include "output/torn.h"

#define FRAME_BYTES (1 << 20)
#define FRAME_NS    200000000ULL
#define RETRY_MS    200
#define END_S	    5
#define PIPE_BYTES  (1 << 20) /* as much as a user may ask for: fs.pipe-max-size */
#define TURNS_MOST  16	      /* files that may wait for their turn */

struct packer {
	pthread_t thread;
	int in, file, wake; /* the pipe; the file; an eventfd: `next` or `last` has changed */
	int over;	    /* an eventfd: the thread has ended */
	bool append, ending;
	bool looked; /* the file ends with a whole frame */
	char *text;  /* records that are not written yet; the last may be incomplete */
	size_t used, room;
	__u64 since; /* when the first of them came, or a frame was due, CLOCK_MONOTONIC */
	/* set by the other thread: */
	int given; /* the file that it has given last */
	struct {
		pthread_mutex_t lock;
		struct packed_place {
			int in, file; /* take the places of `in`, when that has ended, and of `file` */
		} list[TURNS_MOST];
		size_t nr;
	} next;
	bool last;  /* nothing more is written into the pipe */
	bool bytes; /* no lines */
	bool begun; /* see packer_begin() */
	/* read by the other thread: */
	int error;   /* errno of a failure after which nothing is written; 0 */
	int stopped; /* errno of one that may pass, while it lasts; 0 */
};

static bool has_next(struct packer *packer)
{
	bool has;

	pthread_mutex_lock(&packer->next.lock);
	has = packer->next.nr;
	pthread_mutex_unlock(&packer->next.lock);
	return has;
}

/* Waits until `in` (-1: none) has something to read, the other thread says something, or the time is over. */
static void wait_for(struct packer *packer, int in, int timeout_ms)
{
	struct pollfd fds[] = {{in, POLLIN, 0}, {packer->wake, POLLIN, 0}};
	__u64 times;

	poll(fds, ARRAY_SIZE(fds), timeout_ms);
	if (fds[1].revents && read(packer->wake, &times, sizeof(times)) > 0)
		packer->ending = __atomic_load_n(&packer->last, __ATOMIC_ACQUIRE);
}

static int write_once(int file, const char *bytes, size_t size)
{
	for (ssize_t n; size; bytes += n, size -= n)
		if ((n = write(file, bytes, size)) < 0)
			return errno;
	return 0;
}

/* Writes a frame, or nothing of it. */
static int write_frame(struct packer *packer, const char *frame, size_t size)
{
	struct stat before;
	int err;

	if (fstat(packer->file, &before))
		return errno;
	err = write_once(packer->file, frame, size);
	if (err && S_ISREG(before.st_mode) && ftruncate(packer->file, before.st_size))
		return errno;
	return err;
}

static bool may_pass(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

/* Returns 0, or an errno. */
static int begin_packed(struct packer *packer)
{
	if (!packer->append && ftruncate(packer->file, 0) && errno != EINVAL)
		return errno;
	if (!packer->looked)
		torn_frame_remove(packer->file);
	packer->append = packer->looked = true;
	return 0;
}

/* Writes an empty frame into a file that has nothing: without one, it is no compressed file. Returns 0, or an
 * errno. */
static int pack_nothing(struct packer *packer)
{
	int err = begin_packed(packer);
	struct stat stat;
	size_t size;
	char *frame;

	if (err || fstat(packer->file, &stat) || stat.st_size || !S_ISREG(stat.st_mode))
		return err;
	frame = zstd_frame("", 0, &size);
	err = write_frame(packer, frame, size);
	free(frame);
	return err;
}

/* Writes the whole records as a frame. While the disk is full, it is tried again, unless another file takes
 * the place of this one, or the end has come. What could not be written is kept. */
static int pack_frame(struct packer *packer)
{
	const char *last = memrchr(packer->text, '\n', packer->used);
	bool bytes = __atomic_load_n(&packer->bytes, __ATOMIC_ACQUIRE);
	size_t lines = last ? last + 1 - packer->text : 0, whole = bytes ? packer->used : lines, size;
	char *frame;
	int err;

	packer->since = clock_ns(CLOCK_MONOTONIC); /* of what is left, an incomplete record */
	if (!whole)
		return 0;
	err = begin_packed(packer);
	if (err)
		return err;
	frame = zstd_frame(packer->text, whole, &size);
	while ((err = write_frame(packer, frame, size)) && may_pass(err) && !packer->ending &&
	       !has_next(packer)) {
		__atomic_store_n(&packer->stopped, err, __ATOMIC_RELEASE);
		wait_for(packer, -1, RETRY_MS);
	}
	free(frame);
	__atomic_store_n(&packer->stopped, 0, __ATOMIC_RELEASE);
	if (err)
		return err;
	memmove(packer->text, packer->text + whole, packer->used - whole);
	packer->used -= whole;
	return 0;
}

/* Returns the number of bytes; 0: there is nothing now; -1: nothing more will come. */
static ssize_t take_text(struct packer *packer)
{
	ssize_t got;

	packer->text = xfit(packer->text, packer->used + FRAME_BYTES, &packer->room, 1);
	got = read(packer->in, packer->text + packer->used, FRAME_BYTES);
	if (got > 0) {
		packer->since = packer->used ? packer->since : clock_ns(CLOCK_MONOTONIC);
		packer->used += got;
	}
	return got > 0 ? got : !got || errno != EAGAIN || packer->ending ? -1 : 0;
}

static int remaining_ms(const struct packer *packer)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC), due = packer->since + FRAME_NS;

	if (!packer->used)
		return -1;
	return now < due ? (due - now) / 1000000 + 1 : 0;
}

/* Goes on with the next pipe and file. Text that the former file had no room for goes into this one. */
static void turn_packer(struct packer *packer)
{
	close(packer->in);
	close(packer->file);
	pthread_mutex_lock(&packer->next.lock);
	packer->in = packer->next.list[0].in;
	packer->file = packer->next.list[0].file;
	memmove(packer->next.list, packer->next.list + 1, --packer->next.nr * sizeof(struct packed_place));
	pthread_mutex_unlock(&packer->next.lock);
	packer->append = true;
	packer->looked = false;
}

static void set_error(struct packer *packer, int err)
{
	__atomic_store_n(&packer->error, err, __ATOMIC_RELEASE);
}

static void *work(void *argument)
{
	struct packer *packer = argument;
	ssize_t got = 0;
	__u64 one = 1;
	int err = 0;

	while (!err && got >= 0) {
		bool ending = packer->ending; /* before the last look into the pipe */

		got = take_text(packer);
		if (got > 0 ? packer->used >= FRAME_BYTES : got < 0 || !remaining_ms(packer))
			err = pack_frame(packer);
		if ((err || got < 0) && has_next(packer)) {
			if (got < 0)
				turn_packer(packer);
			got = err = 0;
		}
		if (!got && !ending && !err)
			wait_for(packer, packer->in, remaining_ms(packer));
	}
	set_error(packer, err); /* who finds that nobody reads the pipe asks why */
	close(packer->in);
	packer->in = -1;
	while (!packer->ending) /* packer_file() is asked for until then */
		wait_for(packer, packer->in, -1);
	if (!err && __atomic_load_n(&packer->begun, __ATOMIC_ACQUIRE))
		set_error(packer, err = pack_nothing(packer));
	if (close(packer->file) && !err)
		set_error(packer, errno);
	for (size_t i = 0; i < packer->next.nr; i++) {
		close(packer->next.list[i].in);
		close(packer->next.list[i].file);
	}
	if (write(packer->over, &one, sizeof(one)) < 0)
		abort(); /* an eventfd takes a first 1 */
	return NULL;
}

static void release_packer(struct packer *packer)
{
	close(packer->wake);
	close(packer->over);
	free(packer->text);
	free(packer);
}

/* Returns 0, or -1 with errno. */
static int make_pipe(int ends[2])
{
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -1;
	fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
	return 0;
}

int packer_start(struct packer **result, int file, bool append)
{
	struct packer *packer = xcalloc(1, sizeof(*packer));
	int ends[2];

	*packer = (struct packer){.file = file,
				  .given = file,
				  .next = {.lock = PTHREAD_MUTEX_INITIALIZER},
				  .append = append,
				  .wake = eventfd(0, EFD_CLOEXEC),
				  .over = eventfd(0, EFD_CLOEXEC)};
	if (packer->wake < 0 || packer->over < 0 || make_pipe(ends)) {
		release_packer(packer);
		return -1;
	}
	packer->in = ends[0];
	fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
	if (!thread_start(&packer->thread, work, packer)) {
		close(ends[0]);
		close(ends[1]);
		release_packer(packer);
		errno = EAGAIN;
		return -1;
	}
	*result = packer;
	return ends[1];
}

void packer_take_bytes(struct packer *packer)
{
	__atomic_store_n(&packer->bytes, true, __ATOMIC_RELEASE);
}

void packer_begin(struct packer *packer)
{
	__atomic_store_n(&packer->begun, true, __ATOMIC_RELEASE);
}

int packer_file(const struct packer *packer)
{
	return packer->given;
}

int packer_stopped(const struct packer *packer)
{
	return __atomic_load_n(&packer->stopped, __ATOMIC_ACQUIRE);
}

static int wake_packer(struct packer *packer)
{
	__u64 one = 1;

	return write(packer->wake, &one, sizeof(one)) < 0 ? errno : 0;
}

int packer_turn(struct packer *packer, int file, int former)
{
	int ends[2] = {-1, former}, skipped = -1;

	/* If it is too far behind, this one takes the last one's place. */
	pthread_mutex_lock(&packer->next.lock);
	if (packer->next.nr == TURNS_MOST) {
		skipped = packer->next.list[TURNS_MOST - 1].file;
		packer->next.list[TURNS_MOST - 1].file = packer->given = file;
	} else if (!make_pipe(ends)) {
		packer->next.list[packer->next.nr++] = (struct packed_place){ends[0], file};
		packer->given = file;
	}
	pthread_mutex_unlock(&packer->next.lock);
	if (packer->given != file)
		return -1;
	fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
	close(skipped >= 0 ? skipped : former);
	wake_packer(packer);
	return ends[1];
}

int packer_error(const struct packer *packer)
{
	return __atomic_load_n(&packer->error, __ATOMIC_ACQUIRE);
}

int packer_end(struct packer *packer)
{
	int err;

	if (!packer)
		return 0;
	__atomic_store_n(&packer->last, true, __ATOMIC_RELEASE);
	err = wake_packer(packer);
	if (err)
		return err;
	if (!readable_by(packer->over, clock_ns(CLOCK_MONOTONIC) + END_S * 1000000000ULL))
		return ETIMEDOUT; /* the thread may still use it */
	pthread_join(packer->thread, NULL);
	err = packer->error;
	release_packer(packer);
	return err;
}
