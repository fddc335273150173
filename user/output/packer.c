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

#include "base/clock.h"
#include "base/memory.h"
#include "base/readable.h"
#include "base/thread.h"
#include "base/zstd.h"

#define FRAME_BYTES (1 << 20)
#define FRAME_NS    200000000ULL
#define RETRY_MS    200
#define END_S	    5
#define PIPE_BYTES  (1 << 20) /* as much as a user may ask for: fs.pipe-max-size */

struct packer {
	pthread_t thread;
	int in, file, end; /* the pipe; the file; an eventfd: nothing more is written into the pipe */
	int over;	   /* an eventfd: the thread has ended */
	bool append, ending;
	char *text; /* records that are not written yet; the last may be incomplete */
	size_t used, room;
	__u64 since; /* when the first of them came, CLOCK_MONOTONIC */
	bool bytes;  /* no lines; set by the other thread */
	int error;   /* read by the other thread */
};

static void wait_for(struct packer *packer, int timeout_ms)
{
	struct pollfd fds[] = {{packer->in, POLLIN, 0}, {packer->end, POLLIN, 0}};
	__u64 one;

	/* While a write is tried again, the pipe is left alone. */
	poll(timeout_ms == RETRY_MS ? fds + 1 : fds, timeout_ms == RETRY_MS ? 1 : 2, timeout_ms);
	if (fds[1].revents && read(packer->end, &one, sizeof(one)) > 0)
		packer->ending = true;
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

/* Writes the whole records as a frame. While the disk is full, it is tried again. */
static int pack_frame(struct packer *packer)
{
	const char *last = memrchr(packer->text, '\n', packer->used);
	bool bytes = __atomic_load_n(&packer->bytes, __ATOMIC_ACQUIRE);
	size_t lines = last ? last + 1 - packer->text : 0, whole = bytes ? packer->used : lines, size;
	char *frame;
	int err = 0;

	if (!whole)
		return 0;
	if (!packer->append && ftruncate(packer->file, 0) && errno != EINVAL)
		return errno;
	packer->append = true;
	frame = zstd_frame(packer->text, whole, &size);
	while ((err = write_frame(packer, frame, size)) && may_pass(err) && !packer->ending)
		wait_for(packer, RETRY_MS);
	free(frame);
	memmove(packer->text, packer->text + whole, packer->used - whole);
	packer->used -= whole;
	return err;
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
		if (!got && !ending && !err)
			wait_for(packer, remaining_ms(packer));
	}
	close(packer->in);
	packer->in = -1;
	set_error(packer, err);
	while (!packer->ending) /* packer_file() is asked for until then */
		wait_for(packer, -1);
	if (close(packer->file) && !err)
		set_error(packer, errno);
	if (write(packer->over, &one, sizeof(one)) < 0)
		abort(); /* an eventfd takes a first 1 */
	return NULL;
}

static void release_packer(struct packer *packer)
{
	close(packer->end);
	close(packer->over);
	free(packer->text);
	free(packer);
}

int packer_start(struct packer **result, int file, bool append)
{
	struct packer *packer = xcalloc(1, sizeof(*packer));
	int ends[2];

	*packer = (struct packer){.file = file,
				  .append = append,
				  .end = eventfd(0, EFD_CLOEXEC),
				  .over = eventfd(0, EFD_CLOEXEC)};
	if (packer->end < 0 || packer->over < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK)) {
		release_packer(packer);
		return -1;
	}
	packer->in = ends[0];
	fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
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

int packer_file(const struct packer *packer)
{
	return packer->file;
}

int packer_error(const struct packer *packer)
{
	return __atomic_load_n(&packer->error, __ATOMIC_ACQUIRE);
}

int packer_end(struct packer *packer)
{
	__u64 one = 1;
	int err;

	if (!packer)
		return 0;
	if (write(packer->end, &one, sizeof(one)) < 0)
		return errno;
	if (!readable_by(packer->over, clock_ns(CLOCK_MONOTONIC) + END_S * 1000000000ULL))
		return ETIMEDOUT; /* the thread may still use it */
	pthread_join(packer->thread, NULL);
	err = packer->error;
	release_packer(packer);
	return err;
}
