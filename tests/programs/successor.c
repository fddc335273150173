// SPDX-License-Identifier: GPL-2.0-only
/*
 * A second thread executes another program, and so gets the id of the first one, which ends.
 *
 * usage: successor PROGRAM [ARGUMENT...]
 *
 * Prints "ready PID TID", where TID is the second thread, which executes the program at a line on stdin.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *execute(void *argv)
{
	char byte;

	printf("ready %d %d\n", getpid(), gettid());
	fflush(stdout);
	while (read(0, &byte, 1) == 1 && byte != '\n')
		;
	execv(*(char **)argv, argv);
	_exit(99);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 2 || pthread_create(&thread, NULL, execute, argv + 1))
		return 98;
	pthread_join(thread, NULL);
	return 97;
}
