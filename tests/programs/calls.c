// SPDX-License-Identifier: GPL-2.0-only
/*
 * calls STEP…: takes page faults at the end of chains of calls that are known by construction. A
 * step is one of
 *
 *   graph=N     N faults in touch() by way of left(), 2N by way of right(): main, graph, left or right,
 *               middle, touch
 *   deep=D,N    N faults below D calls of down()
 *   tree=D[,B]  one fault below each of the 2^D paths through D calls of west() or east(), which are
 *               below B calls of below()
 *   kernel=N    N faults in the kernel, by read(2) of /dev/zero
 *   spin=MS     no faults: runs in burn() for MS of CPU time, one third of it called by left_spin()
 *               and two thirds by right_spin()
 *   plain=N     N faults right below main
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static char *next;	  /* the page to be touched */
static volatile int kept; /* changed after a call, so that the call is no tail call */

static void pages(long n)
{
	next = mmap(NULL, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (next == MAP_FAILED || madvise(next, n * 4096, MADV_NOHUGEPAGE))
		exit(1);
}

/* Called by leaf functions: a function that calls nothing may have no frame, and then its caller
 * would be missing from the chain. */
void nothing(void)
{
	asm volatile("");
}

void touch(void)
{
	nothing();
	*(volatile char *)next = 1;
	next += 4096;
}

void middle(long n)
{
	for (; n; n--)
		touch();
	kept++;
}

void left(long n)
{
	middle(n);
	kept++;
}

void right(long n)
{
	middle(2 * n);
	kept++;
}

void graph(long n)
{
	left(n);
	right(n);
	kept++;
}

void down(long depth, long n)
{
	if (depth > 1)
		down(depth - 1, n);
	else
		middle(n);
	kept++;
}

void east(long depth);

void west(long depth)
{
	if (depth > 1) {
		west(depth - 1);
		east(depth - 1);
	} else {
		touch();
	}
	kept++;
}

void east(long depth)
{
	if (depth > 1) {
		west(depth - 1);
		east(depth - 1);
	} else {
		touch();
	}
	kept++;
}

void below(long calls, long depth)
{
	if (calls > 1) {
		below(calls - 1, depth);
	} else {
		west(depth);
		east(depth);
	}
	kept++;
}

void by_kernel(long n)
{
	int fd = open("/dev/zero", O_RDONLY);

	for (; n; n--, next += 4096)
		if (read(fd, next, 1) != 1)
			exit(1);
	close(fd);
}

static long cpu_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

void burn(void)
{
	nothing();
	for (volatile int i = 0; i < 100000; i++)
		;
}

void left_spin(void)
{
	burn();
	kept++;
}

void right_spin(void)
{
	burn();
	burn();
	kept++;
}

void spin(long ms)
{
	while (cpu_ms() < ms) {
		left_spin();
		right_spin();
	}
	kept++;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		long a = 0, b = 0;
		char *equals = strchr(argv[i], '=');

		if (!equals || sscanf(equals + 1, "%ld,%ld", &a, &b) < 1)
			return 2;
		*equals = '\0';
		if (!strcmp(argv[i], "graph")) {
			pages(3 * a);
			graph(a);
		} else if (!strcmp(argv[i], "deep")) {
			pages(b);
			down(a, b);
		} else if (!strcmp(argv[i], "tree")) {
			pages(1L << a);
			if (b) {
				below(b, a);
			} else {
				west(a);
				east(a);
			}
		} else if (!strcmp(argv[i], "kernel")) {
			pages(a);
			by_kernel(a);
		} else if (!strcmp(argv[i], "plain")) {
			pages(a);
			for (; a; a--)
				touch();
		} else {
			spin(a);
		}
	}
	return 0;
}
