// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads what this process has mapped, by a helper that doesn't answer, and later by one that answers late. A
 * helper that has been stopped stands for one that waits for the lock of a process's memory. For each step a
 * line tells whether the mappings were found, and how often the helper was waited for.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "naming/foreign.h"
#include "naming/mappings.h"

static pid_t helper;
static int waits, enough; /* after so many waits, the helper goes on */

/* These two stand for those of the C library. */

pid_t fork(void)
{
	pid_t pid = _Fork();

	if (pid)
		helper = pid;
	return pid;
}

int poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	if (timeout > 0 && ++waits == enough)
		kill(helper, SIGCONT);
	return syscall(SYS_poll, fds, nr, timeout);
}

static void count(void *nr, struct mapped_file *file, __u64 begin, __u64 end, __u64 offset)
{
	(void)file, (void)begin, (void)end, (void)offset;
	++*(int *)nr;
}

/* Looks at a new process. */
static void look(struct mappings *mappings, const char *step)
{
	pid_t pid = _Fork();
	int nr = 0;

	if (!pid) {
		pause();
		_exit(0);
	}
	waits = 0;
	mappings_look(mappings, pid);
	mappings_each(mappings, pid, count, &nr);
	printf("%s %s %d\n", step, nr ? "found" : "unknown", waits);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void stop_helper(void)
{
	kill(helper, SIGSTOP);
	waitpid(helper, NULL, WUNTRACED);
}

int main(void)
{
	struct mappings *mappings = mappings_new();
	pid_t first;

	look(mappings, "answers");
	first = helper;
	stop_helper();
	look(mappings, "stuck");
	look(mappings, "another"); /* asks a second helper */
	stop_helper();
	look(mappings, "stuck too");
	kill(first, SIGCONT);
	kill(helper, SIGCONT);
	while (foreign_is_stuck_in_proc("maps"))
		usleep(1000);
	stop_helper();
	enough = 5;
	look(mappings, "late");
	mappings_release(mappings);
	return 0;
}
