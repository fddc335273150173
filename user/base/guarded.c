// SPDX-License-Identifier: GPL-2.0-only
#include "base/guarded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/openat2.h>

/* Returns an O_PATH descriptor, which does not really open the file; -1 with errno on failure. */
static int open_place(int folder, const char *path, __u64 resolve)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = resolve};

	return resolve ? (int)syscall(SYS_openat2, folder, path, &how, sizeof(how))
		       : openat(folder, path, O_PATH | O_CLOEXEC);
}

/* Returns 0, or the errno for what is wrong with the file. */
static int check_found(int found, const struct guard *guard)
{
	struct stat stat;
	bool own, public;

	if (fstat(found, &stat))
		return errno;
	if (!S_ISREG(stat.st_mode))
		return EMEDIUMTYPE;
	if ((__u64)stat.st_size > guard->most)
		return EFBIG;
	own = guard->whose == GUARD_ANYBODY || stat.st_uid == guard->owner;
	public = stat.st_mode & S_IROTH && (guard->whose == GUARD_OWN_OR_PUBLIC || !stat.st_uid);
	return own || public ? 0 : EKEYREJECTED;
}

int guarded_find(int folder, const char *path, __u64 resolve, const struct guard *guard)
{
	int found = open_place(folder, path, resolve), error = found < 0 ? 0 : check_found(found, guard);

	if (!error)
		return found;
	close(found);
	errno = error;
	return -1;
}

int guarded_open_found(int found)
{
	char same[64];

	snprintf(same, sizeof(same), "/proc/self/fd/%d", found);
	/* O_NONBLOCK: do not wait for a lease on the file: fcntl(2), F_SETLEASE. */
	return open(same, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int guarded_open(int folder, const char *path, __u64 resolve, const struct guard *guard)
{
	int found = guarded_find(folder, path, resolve, guard), fd, error;

	if (found < 0)
		return -1;
	fd = guarded_open_found(found);
	error = errno;
	close(found);
	errno = error;
	return fd;
}

int guarded_open_path(const char *path, __u64 most)
{
	const struct guard guard = {.whose = GUARD_ANYBODY, .most = most};

	return guarded_open(AT_FDCWD, path, 0, &guard);
}

const char *guarded_why(int error)
{
	switch (error) {
	case EMEDIUMTYPE:
		return "it is no regular file";
	case EFBIG:
		return "it is larger than what is read";
	case EKEYREJECTED:
		return "it is another user's";
	case ETIMEDOUT: /* of base/copied.h */
		return "its file system does not answer";
	}
	return strerror(error);
}

bool guarded_refused(int error)
{
	return error == EMEDIUMTYPE || error == EFBIG || error == EKEYREJECTED || error == ELOOP ||
	       error == EXDEV;
}
