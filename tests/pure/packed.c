// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gives a packer the texts of its input, and prints how it waits for the next: "watched 200" is a wait of up
 * to 200 ms in which it takes what comes, "blind 200" one in which it does not. A wait is over at once here:
 * the clock is put forward instead. The next text comes when the packer has waited WAITS times, or waits
 * without an end.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/zstd.h"
#include "output/packer.h"

#define WAITS 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long long now_ns = 1000000000;
static int left;  /* waits until the next text comes */
static bool ends; /* the last text has come */

/* Time passes at each look at the clock, as it does. */
int clock_gettime(clockid_t clock, struct timespec *at)
{
	long long ns = __atomic_add_fetch(&now_ns, 1000, __ATOMIC_SEQ_CST);

	*at = (struct timespec){ns / 1000000000, ns % 1000000000};
	return 0;
}

static int look(struct pollfd *fds, nfds_t nr, const struct timespec *patience)
{
	return syscall(SYS_ppoll, fds, nr, patience, NULL, 0);
}

int poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	int ready = look(fds, nr, &(struct timespec){0});

	if (ready)
		return ready;
	pthread_mutex_lock(&lock);
	if (left && timeout >= 0)
		printf("%s %d\n", nr > 1 && fds[0].fd >= 0 ? "watched" : "blind", timeout);
	left = left && timeout >= 0 ? left - 1 : 0;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
	if (timeout < 0 || __atomic_load_n(&ends, __ATOMIC_SEQ_CST))
		return look(fds, nr, NULL);
	__atomic_add_fetch(&now_ns, timeout * 1000000LL, __ATOMIC_SEQ_CST);
	usleep(1000);
	return 0;
}

static void give(int fd, const char *text)
{
	pthread_mutex_lock(&lock);
	left = WAITS;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		abort();
	while (left)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

int main(void)
{
	struct refusal refusal;
	struct packer *packer;
	char path[] = "/tmp/packed.XXXXXX", text[4096];
	int file = mkstemp(path), fd;

	if (file < 0 || unlink(path) || zstd_need("-o", "x.zst", &refusal) ||
	    (fd = packer_start(&packer, file, false)) < 0)
		return 1;
	while (fgets(text, sizeof(text), stdin)) {
		if (text[strlen(text) - 2] == '\\')
			text[strlen(text) - 2] = 0; /* the line goes on */
		give(fd, text);
	}
	__atomic_store_n(&ends, true, __ATOMIC_SEQ_CST);
	close(fd);
	return packer_end(packer);
}
