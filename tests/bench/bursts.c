// SPDX-License-Identifier: GPL-2.0-only
/*
 * bursts N [PAGES]: for each byte read from stdin, takes N minor page faults as faults
 * (tests/programs) does, over PAGES pages (default 1000), and writes a line with the nanoseconds of
 * CPU that they took to stdout. Several processes, each measured in its own way, can thus take
 * turns within milliseconds, so that the noise of the machine affects all of them alike.
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

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : PAGES, chunk = argc > 2 ? atol(argv[2]) : PAGES;
	long size = sysconf(_SC_PAGESIZE);
	volatile char *pages =
		mmap(NULL, chunk * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char byte;

	if (pages == MAP_FAILED)
		return 1;
	madvise((void *)pages, chunk * size, MADV_NOHUGEPAGE);
	while (read(STDIN_FILENO, &byte, 1) == 1) {
		long long began = cpu_ns();

		for (long left = n; left > 0;) {
			for (long i = 0; i < chunk && left > 0; i++, left--)
				pages[i * size] = 1;
			madvise((void *)pages, chunk * size, MADV_DONTNEED);
		}
		dprintf(STDOUT_FILENO, "%lld\n", cpu_ns() - began);
	}
	return 0;
}
