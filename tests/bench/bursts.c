// SPDX-License-Identifier: GPL-2.0-only
/*
 * bursts N [PAGES [CALLS]]: for each byte read from stdin, takes N minor page faults as faults (tests/programs)
 * does, over so many pages (1000 if it is not said), and writes the nanoseconds of CPU that they took to
 * stdout, a line a burst; the faults are taken below so many CALLS (none), with frame pointers. Several of them, each measured in its own way, can so take turns within
 * milliseconds, in which a noisy machine is the same to all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGES 1000

static long long cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static long n, chunk, size;
static volatile char *pages;
static volatile int kept; /* what follows a call keeps it from being a jump */

static void take_faults(void)
{
	for (long left = n; left > 0;) {
		for (long i = 0; i < chunk && left > 0; i++, left--)
			pages[i * size] = 1;
		madvise((void *)pages, chunk * size, MADV_DONTNEED);
	}
}

static __attribute__((noinline)) void call(long calls)
{
	if (calls)
		call(calls - 1);
	else
		take_faults();
	kept++;
}

int main(int argc, char **argv)
{
	long calls = argc > 3 ? atol(argv[3]) : 0;
	char byte;

	n = argc > 1 ? atol(argv[1]) : PAGES;
	chunk = argc > 2 ? atol(argv[2]) : PAGES;
	size = sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, chunk * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return 1;
	madvise((void *)pages, chunk * size, MADV_NOHUGEPAGE);
	while (read(STDIN_FILENO, &byte, 1) == 1) {
		long long began = cpu_ns();

		call(calls);
		dprintf(STDOUT_FILENO, "%lld\n", cpu_ns() - began);
	}
	return 0;
}
