// SPDX-License-Identifier: GPL-2.0-only
/* A process whose first thread has ended. The other one reads numbers, and touches so many new pages for
 * each. It says its pid and tid, and "done" after each number. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

__attribute__((noinline)) void touch(volatile char *pages, long nr)
{
	for (long i = 0; i < nr; i++)
		pages[i * PAGE] = 1;
}

__attribute__((noinline)) void serve(long nr)
{
	char *pages = mmap(NULL, nr * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		exit(1);
	touch(pages, nr);
	munmap(pages, nr * PAGE);
	printf("done\n");
}

/* Whether the first thread has ended: then /proc has no root for it. */
static int leads(void)
{
	char path[64], root[2];

	snprintf(path, sizeof(path), "/proc/%d/root", getpid());
	return readlink(path, root, sizeof(root)) >= 0;
}

static void *work(__attribute__((unused)) void *nothing)
{
	char line[64];

	while (leads())
		usleep(1000);
	printf("ready %d %d\n", getpid(), gettid());
	while (fgets(line, sizeof(line), stdin))
		serve(atol(line));
	exit(0);
}

int main(void)
{
	pthread_t thread;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (pthread_create(&thread, NULL, work, NULL))
		return 1;
	pthread_exit(NULL);
}
