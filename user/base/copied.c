// SPDX-License-Identifier: GPL-2.0-only
#include "base/copied.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "base/local.h"
#include "base/packet.h"

struct copy_wanted {
	const char *path;
	__u64 most;
};

/* Returns the descriptor of the copy, or -1 with errno. */
static int copy(int from, __u64 most)
{
	int to = memfd_create("nhmtap-copy", MFD_CLOEXEC), error = 0;
	char piece[4096];
	ssize_t got = 0;

	while (to >= 0 && !error && (got = read(from, piece, sizeof(piece)))) {
		if (got < 0 || (__u64)got > most)
			error = got < 0 ? errno : EFBIG;
		else if (write(to, piece, got) != got)
			error = ENOSPC;
		most -= got;
	}
	if (to < 0 || (!error && !lseek(to, 0, SEEK_SET)))
		return to;
	close(to);
	errno = error;
	return -1;
}

static void copy_and_tell(int socket, const void *context)
{
	const struct copy_wanted *wanted = context;
	int from = guarded_open_path(wanted->path, wanted->most);
	int to = from < 0 ? -1 : copy(from, wanted->most), error = to < 0 ? errno : 0;

	packet_send(socket, (struct iovec[]){{&error, sizeof(error)}}, 1, to);
}

int copied_open(const char *path, __u64 most, __u64 wait_ns)
{
	const struct copy_wanted wanted = {path, most};
	struct apart apart = {0};
	int fd = -1, error, err;

	if (local_place(path) || !apart_start(&apart, "nhmtap-copy", copy_and_tell, &wanted, -1))
		return guarded_open_path(path, most);
	err = apart_receive(&apart, &error, sizeof(error), &fd, clock_ns(CLOCK_MONOTONIC) + wait_ns);
	apart_leave(&apart);
	errno = err ? err : error;
	return err || error ? -1 : fd;
}
