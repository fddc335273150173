// SPDX-License-Identifier: GPL-2.0-only
#include "run/watch.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"

#define LOOK_MS	      1000
#define FIRST_LOOK_NS 5000000000ULL

/* What differs between two versions of a file. All zero: there is none. */
struct version {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec modified;
};

static struct version version_at(const char *path)
{
	struct stat stat_;

	if (stat(path, &stat_))
		return (struct version){0};
	return (struct version){stat_.st_dev, stat_.st_ino, stat_.st_size, stat_.st_mtim};
}

static bool is_same(const struct version *a, const struct version *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->modified.tv_sec == b->modified.tv_sec && a->modified.tv_nsec == b->modified.tv_nsec;
}

/* Sends a byte for each change, until the other end of the socket is closed. A file that is being written
 * differs at each look; one that is away for a moment is about to be replaced. */
static void serve_versions(int socket, const void *path)
{
	struct pollfd closed = {.fd = socket};
	struct version told = version_at(path), last = told;

	send(socket, "", 1, MSG_NOSIGNAL);
	while (poll(&closed, 1, LOOK_MS) <= 0) {
		struct version now = version_at(path);

		if (now.ino && is_same(&now, &last) && !is_same(&now, &told)) {
			if (send(socket, "", 1, MSG_NOSIGNAL) < 0)
				return;
			told = now;
		}
		last = now;
	}
}

bool watch_begin(struct apart *watcher, const char *path)
{
	char first;
	int none;

	if (!apart_start(watcher, "nhmtap-watch", serve_versions, path, -1))
		return false;
	/* It has looked once: from here on a change is seen. Whoever reads the file tells if it can't be. */
	apart_receive(watcher, &first, sizeof(first), &none, clock_ns(CLOCK_MONOTONIC) + FIRST_LOOK_NS);
	return true;
}

int watch_take(const struct apart *watcher)
{
	char change;
	ssize_t n = recv(watcher->socket, &change, sizeof(change), MSG_DONTWAIT);

	if (n > 0)
		return 1;
	return n < 0 && errno == EAGAIN ? 0 : -1;
}
