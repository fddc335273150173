// SPDX-License-Identifier: GPL-2.0-only
#include "base/piped.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/local.h"
#include "base/packet.h"
#include "base/visible.h"
#include "base/zstd.h"

#define SOON_NS	 2000000000ULL
#define AFTER_NS 3600000000000ULL

struct piped_file {
	int error; /* errno; 0: it is open */
	struct stat stat;
};

static int open_here(int *fd, const char *path, struct stat *stat)
{
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	return *fd < 0 || fstat(*fd, stat) ? errno : 0;
}

static void send_packet(int socket, const void *packet, size_t size)
{
	packet_send(socket, (struct iovec[]){{(void *)packet, size}}, 1, -1);
}

static int pass_all(int from, int to)
{
	static char bytes[65536];
	ssize_t got;

	while ((got = read(from, bytes, sizeof(bytes))) > 0)
		for (ssize_t done = 0, n; done < got; done += n)
			if ((n = write(to, bytes + done, got - done)) <= 0)
				return 0; /* nobody reads it any more */
	return got < 0 ? errno : 0;
}

/* Sends struct piped_file, and at the end the errno of reading. */
static void serve(int socket, const void *path)
{
	struct piped_file opened = {0};
	int from, error;

	opened.error = open_here(&from, path, &opened.stat);
	send_packet(socket, &opened, sizeof(opened));
	if (opened.error)
		return;
	error = zstd_is_name(path) ? zstd_pass(from, APART_KEPT) : pass_all(from, APART_KEPT);
	send_packet(socket, &error, sizeof(error));
}

static int wait_until_open(const struct apart *apart, const char *path, struct piped_file *opened)
{
	__u64 wait_ns = SOON_NS;
	int err, none;

	while ((err = apart_receive(apart, opened, sizeof(*opened), &none,
				    clock_ns(CLOCK_MONOTONIC) + wait_ns)) == ETIMEDOUT) {
		if (wait_ns == SOON_NS)
			say("nhmtap: file '%.200s': its file system does not answer; it is waited for", path);
		wait_ns = AFTER_NS;
	}
	return err ? err : opened->error;
}

int piped_open(struct piped *piped, const char *path, struct stat *stat)
{
	struct piped_file opened;
	int ends[2], err;
	bool apart;

	*piped = (struct piped){.fd = -1};
	if (local_place(path) && !zstd_is_name(path))
		return open_here(&piped->fd, path, stat);
	if (pipe2(ends, O_CLOEXEC))
		return errno;
	apart = apart_start(&piped->apart, "nhmtap-input", serve, path, ends[1]);
	close(ends[1]);
	piped->fd = ends[0];
	if (!apart) {
		close(ends[0]);
		if (zstd_is_name(path))
			return EAGAIN;
		return open_here(&piped->fd, path, stat);
	}
	err = wait_until_open(&piped->apart, path, &opened);
	if (err)
		piped_close(piped);
	*stat = opened.stat;
	return err;
}

int piped_close(struct piped *piped)
{
	int error = 0, none;

	if (piped->fd >= 0)
		close(piped->fd);
	/* At the end of the pipe, the packet is there or comes at once. */
	if (piped->apart.pid &&
	    apart_receive(&piped->apart, &error, sizeof(error), &none, clock_ns(CLOCK_MONOTONIC) + SOON_NS))
		error = 0;
	apart_leave(&piped->apart);
	piped->fd = -1;
	return error;
}
