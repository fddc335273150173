// SPDX-License-Identifier: GPL-2.0-only
#include "collection/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/visible.h"
#include "collection/exec_watch.h"
#include "host/privileges.h"

/* What the child tells instead of the errno ENOENT. */
#define NO_INTERPRETER (-1)

static void wait_and_exec(char **argv, const struct inherited *inherited, int go, int failure)
{
	char byte;
	int error;

	sigprocmask(SIG_SETMASK, &inherited->signals, NULL);
	if (inherited->limited)
		setrlimit(RLIMIT_NOFILE, &inherited->descriptors);
	/* Without the byte, the parent has given up: nothing is executed. */
	if (read(go, &byte, 1) != 1)
		_exit(0);
	privileges_of_command();
	execvp(argv[0], argv);
	error = errno;
	/* If a file exists and yet ENOENT is returned, it is a script whose interpreter does not exist. */
	if (error == ENOENT && strchr(argv[0], '/') && !access(argv[0], F_OK))
		error = NO_INTERPRETER;
	if (write(failure, &error, sizeof(error)) < 0)
		_exit(1);
	_exit(error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE);
}

static __u64 timeval_ns(const struct timeval *time)
{
	return time->tv_sec * 1000000000ULL + time->tv_usec * 1000ULL;
}

static void collect(struct child *child, int options)
{
	struct rusage usage;
	pid_t got;

	do
		got = wait4(child->pid, &child->wait_status, options, &usage);
	while (got < 0 && errno == EINTR);
	if (got > 0)
		child->spent = (struct spent){clock_ns(CLOCK_MONOTONIC) - child->began_ns,
					      timeval_ns(&usage.ru_utime), timeval_ns(&usage.ru_stime),
					      usage.ru_minflt, usage.ru_nvcsw + usage.ru_nivcsw};
	if (got > 0 && child->watch && exec_watch_time_ns(child->watch) > child->began_ns)
		child->exec_ns = exec_watch_time_ns(child->watch) - child->began_ns;
	if (got < 0) {
		say("nhmtap: the command's status is not available: %s", strerror(errno));
		child->wait_status = W_EXITCODE(STATUS_PARTIAL, 0);
	}
	child->exited = got != 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int child_start(struct child *child, char **argv, const struct inherited *inherited, struct refusal *refusal)
{
	int go[2] = {-1, -1}, failure[2] = {-1, -1};
	int error;

	*child = (struct child){.go_fd = -1, .failure_fd = -1};
	if (!pipe2(go, O_CLOEXEC) && !pipe2(failure, O_CLOEXEC))
		child->pid = fork();
	else
		child->pid = -1;
	if (child->pid < 0) {
		error = errno;
		for (int i = 0; i < 2; i++) {
			close_fd(&go[i]);
			close_fd(&failure[i]);
		}
		child->pid = 0;
		refuse(refusal, STATUS_REFUSED, "command '%s'", argv[0]);
		refusal->error = error;
		return because(refusal, "no process can be made for it: %s", strerror(error));
	}
	if (!child->pid) {
		close(go[1]);
		wait_and_exec(argv, inherited, go[0], failure[1]);
	}
	close(go[0]);
	close(failure[1]);
	child->go_fd = go[1];
	child->failure_fd = failure[0];
	return 0;
}

static __u64 cpu_time_ns(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) ? 0 : clock_ns(clock);
}

bool child_cut(const struct child *child)
{
	return child->watch && exec_watch_cut(child->watch);
}

/* The child ends by itself. */
static int refuse_exec(struct child *child, char **argv, int error, struct refusal *refusal)
{
	close_fd(&child->failure_fd);
	if (!child->exited)
		collect(child, 0);
	if (error == NO_INTERPRETER) {
		refuse(refusal, STATUS_NOT_EXECUTABLE, "command '%s'", argv[0]);
		refusal->error = ENOENT;
		because(refusal, "the interpreter or loader that it names is not there");
		return instead(refusal, "see its first line (#!), or: file %s", argv[0]);
	}
	refuse(refusal, error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE, "command '%s'", argv[0]);
	refusal->error = error;
	because(refusal, error == ENOENT ? "there is no such program" : "it can't be executed: %s",
		strerror(error));
	return instead(refusal, error == ENOENT	  ? "check its spelling and PATH"
				: error == EACCES ? "is it a program, and executable (chmod +x)?"
						  : "");
}

/* Most programs are executed within a millisecond. */
#define BEGIN_NS 500000000ULL
#define LOOK_MS	 10

static bool is_told_to_end(void)
{
	sigset_t pending;

	return !sigpending(&pending) && (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
					 sigismember(&pending, SIGHUP) || sigismember(&pending, SIGQUIT));
}

int child_go(struct child *child, char **argv, struct refusal *refusal)
{
	struct pollfd told = {.fd = child->failure_fd, .events = POLLIN};
	int error = 0;

	child->watch = exec_watch_open(child->pid);
	child->before_ns = cpu_time_ns(child->pid);
	child->began_ns = clock_ns(CLOCK_MONOTONIC);
	if (write(child->go_fd, "", 1) != 1)
		error = errno;
	close_fd(&child->go_fd);
	if (error)
		return refuse_exec(child, argv, error, refusal);
	while (poll(&told, 1, LOOK_MS) <= 0 && !is_told_to_end() &&
	       clock_ns(CLOCK_MONOTONIC) - child->began_ns < BEGIN_NS)
		;
	return child_begin(child, argv, refusal);
}

bool child_is_beginning(const struct child *child)
{
	return child->pid && child->failure_fd >= 0 && child->go_fd < 0;
}

int child_begin(struct child *child, char **argv, struct refusal *refusal)
{
	struct pollfd told = {.fd = child->failure_fd, .events = POLLIN};
	int error = 0;
	ssize_t got;

	if (!child_is_beginning(child) || poll(&told, 1, 0) <= 0)
		return 0;
	/* When exec succeeds, the pipe is closed without any data. */
	do
		got = read(child->failure_fd, &error, sizeof(error));
	while (got < 0 && errno == EINTR);
	close_fd(&child->failure_fd);
	return error ? refuse_exec(child, argv, error, refusal) : 0;
}

/* Reaps orphans, which nhmtap gets as PID 1. The child may have ended meanwhile, and its status must not be
 * lost. */
static void collect_orphans(struct child *child)
{
	siginfo_t ended = {0};

	while (!waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) && ended.si_pid) {
		if (ended.si_pid == child->pid && !child->exited)
			collect(child, WNOHANG);
		else if (waitpid(ended.si_pid, NULL, WNOHANG) <= 0)
			return;
		ended.si_pid = 0;
	}
}

bool child_reap(struct child *child)
{
	if (child->pid && !child->exited)
		collect(child, WNOHANG);
	collect_orphans(child);
	return child->exited;
}

int child_status(const struct child *child)
{
	if (WIFSIGNALED(child->wait_status))
		return STATUS_SIGNAL + WTERMSIG(child->wait_status);
	return WEXITSTATUS(child->wait_status);
}

void child_release(struct child *child)
{
	bool waiting = child->go_fd >= 0;

	close_fd(&child->go_fd);
	close_fd(&child->failure_fd);
	if (waiting && !child->exited)
		collect(child, 0);
	exec_watch_close(child->watch);
	child->watch = NULL;
	child->pid = 0;
}
