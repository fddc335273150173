// SPDX-License-Identifier: GPL-2.0-only
#include "run/waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "run/addresses.h"

/* How long a command that was told to end (SIGTERM) is waited for. Containers get ten seconds
 * before they are killed; the records are to be out long before. */
#define GRACE_S 2

/* How long it is at least from one look at the kernel's notes to the next: with many processes a second,
 * this is what they cost at most. */
#define LOOK_PAUSE_MS 2

/* What the loop waits for. The target's processes follow behind these. */
enum {
	ON_SIGNAL, ON_INTERVAL, ON_DRAIN, ON_DEADLINE, ON_OUTPUT, ON_HOTPLUG, ON_DELAY, ON_CONTROL, ON_WAKE,
	ON_NOTES, ON_TARGET
};

struct waiting {
	struct pollfd *polls;
	size_t nr;
	size_t targets_left;
	__u64 drain_ns; /* that the timer is set to */
	__u64 intervals_left; /* 0: they end with the run */
};

static void set_timer(int fd, __u64 ns, bool periodic)
{
	struct timespec time = {ns / 1000000000, ns % 1000000000};
	struct itimerspec setting = {.it_value = time, .it_interval = periodic ? time : (struct timespec){0}};

	timerfd_settime(fd, 0, &setting, NULL);
}

/* A descriptor that becomes readable every (or once after) so many ns; -1 for 0. */
static int timer(__u64 ns, bool periodic)
{
	int fd;

	if (!ns)
		return -1;
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	set_timer(fd, ns, periodic);
	return fd;
}

static int pidfd_open(pid_t pid)
{
	return syscall(SYS_pidfd_open, pid, 0);
}

#define LOOK_AT_THREAD_MS 100

static bool thread_is_there(pid_t tid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", tid);
	return !access(path, F_OK);
}

/* A descriptor that becomes readable when a thread has ended. Before Linux 6.9 there is none for one
 * that does not lead its process: a timer stands for it, to look each time. -1: it has ended. */
static int thread_fd(pid_t tid)
{
	int fd = syscall(SYS_pidfd_open, tid, O_EXCL /* PIDFD_THREAD */);

	if (fd < 0)
		fd = pidfd_open(tid);
	if (fd < 0 && errno != ESRCH && thread_is_there(tid))
		fd = timer(LOOK_AT_THREAD_MS * 1000000ULL, true);
	return fd;
}

/* Waits for a process or thread too; one that has ended since its events were opened is not waited
 * for. */
static void wait_for(struct waiting *waiting, int fd)
{
	if (fd >= 0)
		waiting->polls[waiting->nr++].fd = fd;
}

/* What is counted from the moment that counting begins. The intervals' deadlines are the kernel's, one
 * period after the other: a report that was late does not make the next one late. */
static void start_timers(struct waiting *waiting, const struct run *run)
{
	waiting->polls[ON_INTERVAL].fd = timer(run->options->interval_ms * 1000000, true);
	waiting->polls[ON_DEADLINE].fd = timer(run->options->duration_s * 1e9, false);
	waiting->intervals_left = run->options->interval_count;
}

static void waiting_open(struct waiting *waiting, const struct run *run)
{
	const struct target *target = &run->plan.target;

	waiting->polls = calloc(ON_TARGET + target->nr_pids + target->nr_tids + 1,
				sizeof(*waiting->polls));
	waiting->polls[ON_SIGNAL].fd = signalfd(-1, &run->ending, SFD_CLOEXEC | SFD_NONBLOCK);
	waiting->polls[ON_DRAIN].fd = timer(run->drain_ns, true);
	waiting->drain_ns = run->drain_ns;
	waiting->polls[ON_INTERVAL].fd = waiting->polls[ON_DEADLINE].fd = -1;
	waiting->polls[ON_DELAY].fd = -1;
	if (run->options->delay_ms > 0)
		waiting->polls[ON_DELAY].fd = timer(run->options->delay_ms * 1000000, false);
	else
		start_timers(waiting, run);
	waiting->polls[ON_CONTROL].fd = run->control.fd;
	waiting->polls[ON_OUTPUT].fd = run->stream.sink.fd;
	waiting->polls[ON_HOTPLUG].fd = run->hotplug.notices;
	waiting->polls[ON_WAKE].fd = run->activity->wake_fd ? run->activity->wake_fd(run) : -1;
	waiting->polls[ON_NOTES].fd = run->addresses ? addresses_fd(run->addresses) : -1;
	waiting->nr = ON_TARGET;
	if (run->child.pid)
		waiting->polls[waiting->nr++].fd = pidfd_open(run->child.pid);
	for (size_t i = 0; i < target->nr_pids; i++)
		wait_for(waiting, pidfd_open(target->pids[i]));
	for (size_t i = 0; i < target->nr_tids; i++)
		wait_for(waiting, thread_fd(target->tids[i]));
	waiting->targets_left = waiting->nr - ON_TARGET;
	/* No events are asked for of the output: that its reader has gone is told all the same. */
	for (size_t i = 0; i < waiting->nr; i++)
		waiting->polls[i].events = i == ON_OUTPUT ? 0 : POLLIN;
}

static void waiting_close(struct waiting *waiting)
{
	for (size_t i = 0; i < waiting->nr; i++)
		if (i != ON_OUTPUT && i != ON_HOTPLUG && i != ON_CONTROL && i != ON_WAKE && i != ON_NOTES &&
		    waiting->polls[i].fd >= 0)
			close(waiting->polls[i].fd);
	free(waiting->polls);
}

/* Ends the run: the command, if there is one, is told to end and given some time. */
static void ending(struct run *run, struct waiting *waiting, const char *reason, bool tell_command)
{
	if (!run->reason)
		run->reason = reason;
	if (!run->child.pid || run->child.exited)
		return;
	if (tell_command)
		kill(run->child.pid, SIGTERM);
	if (waiting->polls[ON_DEADLINE].fd >= 0)
		close(waiting->polls[ON_DEADLINE].fd);
	waiting->polls[ON_DEADLINE].fd = timer(GRACE_S * 1000000000ULL, false);
}

static void on_signal(struct run *run, struct waiting *waiting)
{
	struct signalfd_siginfo info;

	if (read(waiting->polls[ON_SIGNAL].fd, &info, sizeof(info)) != sizeof(info))
		return;
	/* A second signal means now: nothing more is written. */
	if (run->ended_by)
		_exit(STATUS_SIGNAL + info.ssi_signo);
	run->ended_by = info.ssi_signo;
	/* The terminal sends ^C to the command as well. */
	ending(run, waiting, info.ssi_signo == SIGINT ? "interrupted" : "terminated",
	       info.ssi_code != SI_KERNEL);
}

/* The run has gone on long enough: a command is told, and given its grace. */
static void enough(struct run *run, struct waiting *waiting, const char *reason, bool *over)
{
	*over = !run->child.pid;
	if (!run->reason)
		ending(run, waiting, reason, true);
}

static void on_deadline(struct run *run, struct waiting *waiting, bool *over)
{
	/* The second one is the end of the command's grace. */
	*over = run->reason;
	if (!*over)
		enough(run, waiting, "duration", over);
}

static void on_delay(struct run *run, struct waiting *waiting)
{
	close(waiting->polls[ON_DELAY].fd);
	waiting->polls[ON_DELAY].fd = -1;
	run_begin_late(run);
	start_timers(waiting, run);
}

/* Nothing more can be written. The command goes on; its status is still to be passed on. */
static void on_output(struct run *run, struct waiting *waiting, bool *over)
{
	if (!run->stream.sink.error)
		run->stream.sink.error = EPIPE;
	waiting->polls[ON_OUTPUT].fd = -1;
	if (waiting->polls[ON_INTERVAL].fd >= 0)
		close(waiting->polls[ON_INTERVAL].fd);
	waiting->polls[ON_INTERVAL].fd = -1;
	if (waiting->polls[ON_DRAIN].fd >= 0)
		close(waiting->polls[ON_DRAIN].fd);
	waiting->polls[ON_DRAIN].fd = waiting->polls[ON_WAKE].fd = -1;
	*over = !run->child.pid;
}

static size_t threads_there(const struct run *run)
{
	size_t nr = 0;

	for (size_t i = 0; i < run->plan.target.nr_tids; i++)
		nr += thread_is_there(run->plan.target.tids[i]);
	return nr;
}

static void on_target(struct run *run, struct waiting *waiting, size_t which, bool *over)
{
	__u64 expirations;

	/* A timer that stands for a thread: any that has gone ends it, as good as its own. */
	if (read(waiting->polls[which].fd, &expirations, sizeof(expirations)) > 0 &&
	    threads_there(run) >= waiting->targets_left)
		return;
	close(waiting->polls[which].fd);
	waiting->polls[which].fd = -1;
	if (run->child.pid) {
		child_reap(&run->child);
		*over = true;
	} else {
		*over = --waiting->targets_left == 0;
	}
	if (*over && !run->reason)
		run->reason = "exited";
}

/* The activity has said how often it wants to be drained. */
static void keep_drain_pace(const struct run *run, struct waiting *waiting)
{
	if (run->drain_ns == waiting->drain_ns || waiting->polls[ON_DRAIN].fd < 0)
		return;
	set_timer(waiting->polls[ON_DRAIN].fd, run->drain_ns, true);
	waiting->drain_ns = run->drain_ns;
}

static void on_interval(struct run *run, struct waiting *waiting, bool *over)
{
	__u64 expirations;

	if (read(waiting->polls[ON_INTERVAL].fd, &expirations, sizeof(expirations)) < 0)
		return;
	/* The last one is reported when the run has ended. */
	if (waiting->intervals_left == 1) {
		enough(run, waiting, "intervals", over);
		return;
	}
	waiting->intervals_left -= waiting->intervals_left > 0;
	run_report(run, false);
	keep_drain_pace(run, waiting);
	if (sink_flush(&run->stream.sink))
		on_output(run, waiting, over);
}

static void on_drain(struct run *run, struct waiting *waiting, bool *over)
{
	__u64 expirations;

	if (waiting->polls[ON_DRAIN].revents &&
	    read(waiting->polls[ON_DRAIN].fd, &expirations, sizeof(expirations)) < 0)
		return;
	run->activity->drain(run);
	keep_drain_pace(run, waiting);
	if (sink_flush(&run->stream.sink))
		on_output(run, waiting, over);
}

static void obey(struct run *run, struct waiting *waiting, enum control_command command, bool *over)
{
	switch (command) {
	case CONTROL_ENABLE:
	case CONTROL_DISABLE:
		if (run_switch(run, command == CONTROL_ENABLE))
			return;
		break;
	case CONTROL_SNAPSHOT:
		run_report(run, false);
		if (sink_flush(&run->stream.sink))
			on_output(run, waiting, over);
		break;
	case CONTROL_STOP:
		enough(run, waiting, "stopped", over);
		break;
	case CONTROL_PING:
		break;
	case CONTROL_UNKNOWN:
	case CONTROL_NOTHING:
		return;
	}
	control_acknowledge(&run->control);
}

static void on_control(struct run *run, struct waiting *waiting, bool *over)
{
	enum control_command command;

	while (!*over && (command = control_next(&run->control)))
		obey(run, waiting, command, over);
	waiting->polls[ON_CONTROL].fd = run->control.fd;
}

void wait_for_end(struct run *run)
{
	struct waiting waiting;
	int pause = -1;
	bool over;

	counters_free_descriptors();
	waiting_open(&waiting, run);
	over = (run->plan.target.nr_pids || run->plan.target.nr_tids) && !waiting.targets_left;
	if (over)
		run->reason = "exited";
	while (!over) {
		int ready = poll(waiting.polls, waiting.nr, pause);

		if (!ready) {
			waiting.polls[ON_NOTES].events = POLLIN;
			pause = -1;
		}
		if (ready <= 0)
			continue;
		if (waiting.polls[ON_SIGNAL].revents) {
			on_signal(run, &waiting);
			over = !run->child.pid;
		}
		if (waiting.polls[ON_OUTPUT].revents & (POLLERR | POLLHUP))
			on_output(run, &waiting, &over);
		for (size_t i = ON_TARGET; i < waiting.nr; i++)
			if (waiting.polls[i].revents)
				on_target(run, &waiting, i, &over);
		if (!over && waiting.polls[ON_NOTES].revents) {
			addresses_take(run->addresses, false);
			waiting.polls[ON_NOTES].events = 0;
			pause = LOOK_PAUSE_MS;
		}
		if (!over && waiting.polls[ON_CONTROL].revents)
			on_control(run, &waiting, &over);
		if (!over && waiting.polls[ON_DELAY].revents)
			on_delay(run, &waiting);
		if (!over && waiting.polls[ON_DEADLINE].revents)
			on_deadline(run, &waiting, &over);
		if (!over && waiting.polls[ON_HOTPLUG].revents)
			hotplug_follow(run);
		if (!over && (waiting.polls[ON_DRAIN].revents || waiting.polls[ON_WAKE].revents))
			on_drain(run, &waiting, &over);
		if (!over && waiting.polls[ON_INTERVAL].revents)
			on_interval(run, &waiting, &over);
	}
	waiting_close(&waiting);
}
