// SPDX-License-Identifier: GPL-2.0-only
/*
 * cost COMMAND…: runs COMMAND, and prints its CPU time in ns and its peak resident set in bytes on
 * stderr. A process starts with the peak of its parent, which is why this parent is small.
 */
#include <stdio.h>
#include <unistd.h>
#include <sys/resource.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
	struct rusage usage;
	int status;
	pid_t pid;

	if (argc < 2)
		return 2;
	pid = fork();

	if (!pid) {
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	if (wait4(pid, &status, 0, &usage) != pid || status)
		return 1;
	fprintf(stderr, "%lld %ld\n",
		(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000LL +
			(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000LL,
		usage.ru_maxrss * 1024);
	return 0;
}
