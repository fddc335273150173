// SPDX-License-Identifier: GPL-2.0-only
/*
 * pingpong N ONE OTHER: two processes on one CPU, one in the cgroup ONE and one in OTHER (folders).
 * For each byte read from stdin they pass a byte back and forth N times, which is 2 × N switches
 * between the cgroups. Each time, a line with the nanoseconds of CPU that this took both goes to
 * stdout.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static void enter(const char *folder)
{
	char path[4096];
	int procs;

	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	procs = open(path, O_WRONLY);
	if (procs < 0 || write(procs, "0", 1) != 1)
		fail(path);
	close(procs);
}

static long long cpu_ns(clockid_t of)
{
	struct timespec now;

	clock_gettime(of, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void hand(int there, int back, long times)
{
	char byte = '.';

	while (times--)
		if (write(there, &byte, 1) != 1 || read(back, &byte, 1) != 1)
			fail("the other process");
}

static void hand_back(int there, int back)
{
	char byte;

	while (read(there, &byte, 1) == 1)
		if (write(back, &byte, 1) != 1)
			fail("the first process");
	_exit(0);
}

int main(int argc, char **argv)
{
	int there[2], back[2];
	cpu_set_t one;
	clockid_t others;
	pid_t other;
	char byte;

	if (argc < 4)
		return 2;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) || pipe(there) || pipe(back))
		fail("a CPU and pipes");
	other = fork();
	if (!other) {
		close(there[1]);
		enter(argv[3]);
		hand_back(there[0], back[1]);
	}
	enter(argv[2]);
	if (other < 0 || clock_getcpuclockid(other, &others))
		fail("the other process");
	while (read(STDIN_FILENO, &byte, 1) == 1) {
		long long began = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) + cpu_ns(others);

		hand(there[1], back[0], atol(argv[1]));
		dprintf(STDOUT_FILENO, "%lld\n", cpu_ns(CLOCK_PROCESS_CPUTIME_ID) + cpu_ns(others) - began);
	}
	return 0;
}
