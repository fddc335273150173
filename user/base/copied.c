// SPDX-License-Identifier: GPL-2.0-only
#include "base/copied.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "base/local.h"
#include "base/memory.h"
#include "base/packet.h"

/* After a failure to answer, how long little is expected, and how long is waited then. */
#define LATE_NS	 2000000000ULL
#define SHORT_NS 100000000ULL

struct copy_wanted {
	const char *path;
	__u64 most;
};

/* Returns the descriptor of the copy, or -1 with errno. */
static int copy_descriptor(int from, __u64 most)
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

#define NO_PROCESS (-3) /* no FD_CUT */

/* Has a process do it. Returns the descriptor that it sends, -1 with errno, or NO_PROCESS if there can be
 * none. */
static int ask_process(void (*serve)(int socket, const void *context), const void *context, __u64 wait_ns)
{
	static __u64 late_ns;
	__u64 now = clock_ns(CLOCK_MONOTONIC);
	int fd, error = 0, err;

	if (late_ns && now - late_ns < LATE_NS && wait_ns > SHORT_NS)
		wait_ns = SHORT_NS;
	err = apart_once("nhmtap-copy", serve, context, -1, &error, sizeof(error), &fd, wait_ns);
	if (err == ETIMEDOUT)
		late_ns = clock_ns(CLOCK_MONOTONIC);
	if (err == EAGAIN)
		return NO_PROCESS;
	errno = err ? err : error;
	return err || error ? -1 : fd;
}

static void send_copy(int socket, int fd)
{
	int error = fd < 0 ? errno : 0;

	packet_send(socket, (struct iovec[]){{&error, sizeof(error)}}, 1, fd);
}

static void copy_and_tell(int socket, const void *context)
{
	const struct copy_wanted *wanted = context;
	int from = guarded_open_path(wanted->path, wanted->most);

	send_copy(socket, from < 0 ? -1 : copy_descriptor(from, wanted->most));
}

int copied_open(const char *path, __u64 most, __u64 wait_ns)
{
	const struct copy_wanted wanted = {path, most};
	int fd = local_place(path) ? NO_PROCESS : ask_process(copy_and_tell, &wanted, wait_ns);

	return fd == NO_PROCESS ? guarded_open_path(path, most) : fd;
}

/* --- what is not the contents of a file ------------------------------------------------------- */

/* Returns a file in memory with these bytes, or -1 with errno. */
static int in_memory(const void *bytes, size_t size)
{
	int fd = memfd_create("nhmtap-copy", MFD_CLOEXEC);

	if (fd >= 0 && pwrite(fd, bytes, size, 0) == (ssize_t)size)
		return fd;
	if (fd >= 0)
		close(fd);
	errno = ENOSPC;
	return -1;
}

static void look_and_tell(int socket, const void *path)
{
	struct stat found;

	send_copy(socket, stat(path, &found) ? -1 : in_memory(&found, sizeof(found)));
}

int copied_stat(const char *path, struct stat *found, __u64 wait_ns)
{
	bool whole;
	int fd;

	fd = local_place(path) ? NO_PROCESS : ask_process(look_and_tell, path, wait_ns);
	if (fd == NO_PROCESS)
		return stat(path, found);
	if (fd < 0)
		return -1;
	whole = pread(fd, found, sizeof(*found), 0) == sizeof(*found);
	close(fd);
	errno = EIO;
	return whole ? 0 : -1;
}

static int no_dots(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

static char *list(const char *path, size_t *size)
{
	struct dirent **entries;
	char *names = NULL;
	int nr = scandir(path, &entries, no_dots, alphasort);
	FILE *file;

	if (nr < 0)
		return NULL;
	file = xopen_memstream(&names, size);
	for (int i = 0; i < nr; i++) {
		fwrite(entries[i]->d_name, strlen(entries[i]->d_name) + 1, 1, file);
		free(entries[i]);
	}
	free(entries);
	fputc('\0', file);
	fclose(file);
	return names;
}

static void list_and_tell(int socket, const void *path)
{
	size_t size;
	char *names = list(path, &size);

	send_copy(socket, names ? in_memory(names, size) : -1);
	free(names);
}

char *copied_list(const char *path, __u64 wait_ns)
{
	size_t size;
	off_t end;
	char *names;
	int fd;

	fd = local_place(path) ? NO_PROCESS : ask_process(list_and_tell, path, wait_ns);
	if (fd == NO_PROCESS)
		return list(path, &size);
	if (fd < 0)
		return NULL;
	end = lseek(fd, 0, SEEK_END);
	names = xcalloc(end + 2, 1);
	pread(fd, names, end, 0);
	close(fd);
	return names;
}
