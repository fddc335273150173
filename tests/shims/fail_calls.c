// SPDX-License-Identifier: GPL-2.0-only
/*
 * To be preloaded: calls that fail now and then. FAIL_FILE has a seed, as a __u64, which may be changed while
 * the process runs; 0: no call fails. Of all writes, every third fails as it may on any machine: a file has
 * no room (ENOSPC), a pipe or a socket neither (EAGAIN), or less is taken than was given. Of others, every
 * eighth: a wait is interrupted, what is read about processes can't be opened (EMFILE). Programs that it
 * starts are not affected.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const volatile unsigned long long *seed;
static atomic_ullong calls;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FAIL_FILE");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*seed), PROT_READ, MAP_SHARED, fd, 0);

	seed = mapped == MAP_FAILED ? NULL : mapped;
	if (fd >= 0)
		close(fd);
	unsetenv("LD_PRELOAD");
}

/* A number that follows from the seed and the number of the call: splitmix64. 0: the call is left alone, as
 * all are but one in `of`. */
static unsigned long long chance(unsigned int of)
{
	unsigned long long x;

	if (!seed || !*seed)
		return 0;
	x = *seed + ++calls * 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	x ^= x >> 31;
	return x % of ? 0 : x >> 3 | 1;
}

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* Returns how much is taken, 0 if nothing is. */
static size_t taken(int fd, size_t size, unsigned long long by)
{
	struct stat stat;

	if (by % 3 && size > 1)
		return 1 + by / 3 % (size - 1);
	errno = !fstat(fd, &stat) && S_ISREG(stat.st_mode) ? ENOSPC : EAGAIN;
	return 0;
}

ssize_t write(int fd, const void *buffer, size_t size)
{
	static ssize_t (*unchanged)(int, const void *, size_t);
	unsigned long long by = fd > STDERR_FILENO && size > sizeof("ack\n") ? chance(3) : 0;

	if (!unchanged)
		unchanged = next("write");
	if (by && !(size = taken(fd, size, by)))
		return -1;
	return unchanged(fd, buffer, size);
}

ssize_t send(int fd, const void *buffer, size_t size, int flags)
{
	static ssize_t (*unchanged)(int, const void *, size_t, int);
	unsigned long long by = chance(3);

	if (!unchanged)
		unchanged = next("send");
	if (by && !(size = taken(fd, size, by)))
		return -1;
	return unchanged(fd, buffer, size, flags);
}

static int interrupted(void)
{
	errno = EINTR;
	return -1;
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int ms)
{
	static int (*unchanged)(int, struct epoll_event *, int, int);

	if (!unchanged)
		unchanged = next("epoll_wait");
	return ms && chance(8) ? interrupted() : unchanged(epoll, events, most, ms);
}

int epoll_pwait2(int epoll, struct epoll_event *events, int most, const struct timespec *left,
		 const sigset_t *signals)
{
	static int (*unchanged)(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);

	if (!unchanged)
		unchanged = next("epoll_pwait2");
	return chance(8) ? interrupted() : unchanged(epoll, events, most, left, signals);
}

int poll(struct pollfd *list, nfds_t nr, int ms)
{
	static int (*unchanged)(struct pollfd *, nfds_t, int);

	if (!unchanged)
		unchanged = next("poll");
	return chance(8) ? interrupted() : unchanged(list, nr, ms);
}

int open(const char *path, int flags, ...)
{
	static int (*unchanged)(const char *, int, ...);
	mode_t mode = 0;
	va_list args;

	if (!unchanged)
		unchanged = next("open");
	if (flags & (O_CREAT | O_TMPFILE)) {
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	if (!strncmp(path, "/proc/", 6) && chance(8)) {
		errno = EMFILE;
		return -1;
	}
	return unchanged(path, flags, mode);
}
