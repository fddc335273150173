// SPDX-License-Identifier: GPL-2.0-only
#include "output/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "memory.h"

#define FLUSH_AT 65536
#define FLUSH_NS 200000000ULL

static bool is_regular(int fd)
{
	struct stat stat;

	return !fstat(fd, &stat) && S_ISREG(stat.st_mode);
}

/* Records hold addresses and command lines: they are nobody else's business. */
static int open_file(const char *path, bool append)
{
	return open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : 0), 0640);
}

int sink_open(struct sink *sink, const char *path, bool append, struct refusal *refusal)
{
	*sink = (struct sink){.fd = STDOUT_FILENO, .path = path, .append = append, .begun = append};
	if (path) {
		sink->fd = open_file(path, append);
		if (sink->fd < 0) {
			int error = errno;

			refuse(refusal, STATUS_USAGE, "option --output '%s'", path);
			refusal->error = error;
			because(refusal, "it can't be written: %s", strerror(error));
			return instead(refusal, "check the folder and its permissions");
		}
	}
	if (append)
		sink->whole = lseek(sink->fd, 0, SEEK_END);
	sink->terminal = isatty(sink->fd);
	sink->regular = is_regular(sink->fd);
	return 0;
}

int sink_reopen(struct sink *sink)
{
	int fd;

	sink_flush(sink);
	if (!sink->path)
		return -sink->error;
	fd = open_file(sink->path, true);
	if (fd < 0)
		return -sink->error;
	close(sink->fd);
	sink->fd = fd;
	sink->append = sink->begun = true;
	sink->error = 0;
	sink->whole = lseek(fd, 0, SEEK_END);
	return 0;
}

int sink_put(struct sink *sink, const char *text, size_t size)
{
	if (sink->error)
		return -sink->error;
	if (sink->used + size > sink->room) {
		sink->room = 2 * (sink->used + size);
		sink->buffer = xrealloc(sink->buffer, sink->room);
	}
	memcpy(sink->buffer + sink->used, text, size);
	sink->used += size;
	sink->bytes += size;
	return sink->used >= FLUSH_AT ? sink_flush(sink) : 0;
}

static void failed(struct sink *sink, int error)
{
	sink->error = error;
	/* A record that was half-written is taken back; a pipe keeps it, a device has nothing to take. */
	if (sink->path && !ftruncate(sink->fd, sink->whole))
		lseek(sink->fd, sink->whole, SEEK_SET);
}

static void write_all(struct sink *sink, const char *text, size_t size)
{
	size_t done = 0;

	while (!sink->error && done < size) {
		ssize_t n = write(sink->fd, text + done, size - done);

		if (n >= 0)
			done += n;
		else if (errno != EINTR)
			failed(sink, errno);
	}
}

int sink_flush(struct sink *sink)
{
	if (sink->error)
		return -sink->error;
	if (!sink->used)
		return 0;
	/* Fails harmlessly on what can't be truncated: pipes, devices. */
	if (sink->path && !sink->begun && ftruncate(sink->fd, 0) && errno != EINVAL)
		failed(sink, errno);
	sink->begun = true;
	write_all(sink, sink->buffer, sink->used);
	if (!sink->error) {
		sink->whole += sink->used;
		sink->used = 0;
	}
	return -sink->error;
}

int sink_flush_soon(struct sink *sink, unsigned long long *due_ns)
{
	unsigned long long now, due = sink->flushed_ns + FLUSH_NS;

	if (!sink->regular || !sink->used)
		return sink_flush(sink);
	now = clock_ns(CLOCK_MONOTONIC);
	if (now >= due) {
		sink->flushed_ns = now;
		return sink_flush(sink);
	}
	*due_ns = due < *due_ns ? due : *due_ns;
	return 0;
}

int sink_put_last(struct sink *sink, const char *text, size_t size)
{
	if (sink_flush(sink))
		return -sink->error;
	write_all(sink, text, size);
	return -sink->error;
}

int sink_close(struct sink *sink)
{
	sink_flush(sink);
	/* Some file systems tell only now that there was no room. */
	if (sink->path && sink->fd >= 0 && close(sink->fd) && !sink->error)
		sink->error = errno;
	sink->fd = -1;
	free(sink->buffer);
	sink->buffer = NULL;
	return -sink->error;
}

int sink_refusal(const struct sink *sink, struct refusal *refusal)
{
	refuse(refusal, STATUS_PARTIAL, "writing to %s", sink->path ? sink->path : "stdout");
	refusal->error = sink->error;
	if (sink->why)
		return because(refusal, "%s", sink->why);
	because(refusal, "%s; the records end before the run does", strerror(sink->error));
	return instead(refusal, sink->error == ENOSPC ? "make room, or write to another file system" : "");
}
