// SPDX-License-Identifier: GPL-2.0-only
#include "run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/overhead.h"
#include "record/record.h"
#include "run/start.h"

/* How long a command that was told to end (SIGTERM) is waited for. Containers get ten seconds
 * before they are killed; the records are to be out long before. */
#define GRACE_S 2

/* How long it is at most until the target is looked at again: what it maps later than at its start it
 * mostly keeps. */
#define LOOK_MOST_MS 1000

static __u64 nanoseconds(const struct timespec *from, const struct timespec *to)
{
	return (to->tv_sec - from->tv_sec) * 1000000000LL + (to->tv_nsec - from->tv_nsec);
}

static struct timespec now_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now;
}

__u64 run_interval_ns(const struct run *run)
{
	return nanoseconds(&run->interval_began, &run->interval_ended);
}

void run_put_interval(const struct run *run, json_t *record)
{
	json_object_set_new(record, "start_time", value_time(&run->interval_began_at));
	json_object_set_new(record, "duration_ns", json_integer(run_interval_ns(run)));
}

static void begin_interval(struct run *run)
{
	run->interval_began = now_of(CLOCK_MONOTONIC);
	run->interval_began_at = now_of(CLOCK_REALTIME);
}

/* The next interval begins where this one ends, which is before its records are written: no moment is
 * in two of them, and none in neither. */
static void report(struct run *run, const struct activity *activity, bool last)
{
	struct timespec ended_at = now_of(CLOCK_REALTIME);

	run->interval_ended = now_of(CLOCK_MONOTONIC);
	hotplug_follow(run);
	activity->report(run, last);
	hotplug_next(run);
	run->interval_began = run->interval_ended;
	run->interval_began_at = ended_at;
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* What the loop waits for. The target's processes follow behind these. */
enum { ON_SIGNAL, ON_INTERVAL, ON_DRAIN, ON_DEADLINE, ON_OUTPUT, ON_HOTPLUG, ON_WAKE, ON_TARGET };

struct waiting {
	struct pollfd *polls;
	size_t nr;
	size_t targets_left;
	__u64 drain_ns; /* that the timer is set to */
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

static void waiting_open(struct waiting *waiting, const struct run *run)
{
	const struct target *target = &run->plan.target;

	waiting->polls = calloc(ON_TARGET + target->nr_pids + target->nr_tids + 1,
				sizeof(*waiting->polls));
	waiting->polls[ON_SIGNAL].fd = signalfd(-1, &run->ending, SFD_CLOEXEC | SFD_NONBLOCK);
	waiting->polls[ON_INTERVAL].fd = timer(run->options->interval_ms * 1000000, true);
	waiting->polls[ON_DRAIN].fd = timer(run->drain_ns, true);
	waiting->drain_ns = run->drain_ns;
	waiting->polls[ON_DEADLINE].fd = timer(run->options->duration_s * 1e9, false);
	waiting->polls[ON_OUTPUT].fd = run->stream.sink.fd;
	waiting->polls[ON_HOTPLUG].fd = run->hotplug.notices;
	waiting->polls[ON_WAKE].fd = run->activity->wake_fd ? run->activity->wake_fd(run) : -1;
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
		if (i != ON_OUTPUT && i != ON_HOTPLUG && i != ON_WAKE && waiting->polls[i].fd >= 0)
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

static void on_deadline(struct run *run, struct waiting *waiting, bool *over)
{
	/* The second one is the end of the command's grace. */
	*over = run->reason || !run->child.pid;
	if (!*over)
		ending(run, waiting, "duration", true);
	else if (!run->reason)
		run->reason = "duration";
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

static void on_interval(struct run *run, struct waiting *waiting, const struct activity *activity,
			bool *over)
{
	__u64 expirations;

	if (read(waiting->polls[ON_INTERVAL].fd, &expirations, sizeof(expirations)) < 0)
		return;
	report(run, activity, false);
	keep_drain_pace(run, waiting);
	if (sink_flush(&run->stream.sink))
		on_output(run, waiting, over);
}

static void on_drain(struct run *run, struct waiting *waiting, const struct activity *activity,
		     bool *over)
{
	__u64 expirations;

	if (waiting->polls[ON_DRAIN].revents &&
	    read(waiting->polls[ON_DRAIN].fd, &expirations, sizeof(expirations)) < 0)
		return;
	activity->drain(run);
	keep_drain_pace(run, waiting);
	if (sink_flush(&run->stream.sink))
		on_output(run, waiting, over);
}

/* Waits for the end of the run, reporting each interval. */
static void wait_for_end(struct run *run, const struct activity *activity)
{
	struct waiting waiting;
	int pause = activity->look ? 1 : -1;
	bool over;

	counters_free_descriptors();
	waiting_open(&waiting, run);
	over = (run->plan.target.nr_pids || run->plan.target.nr_tids) && !waiting.targets_left;
	if (over)
		run->reason = "exited";
	while (!over) {
		int ready = poll(waiting.polls, waiting.nr, pause);

		if (!ready) {
			activity->look(run);
			pause = 2 * pause < LOOK_MOST_MS ? 2 * pause : LOOK_MOST_MS;
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
		if (!over && waiting.polls[ON_DEADLINE].revents)
			on_deadline(run, &waiting, &over);
		if (!over && waiting.polls[ON_HOTPLUG].revents)
			hotplug_follow(run);
		if (!over && (waiting.polls[ON_DRAIN].revents || waiting.polls[ON_WAKE].revents))
			on_drain(run, &waiting, activity, &over);
		if (!over && waiting.polls[ON_INTERVAL].revents)
			on_interval(run, &waiting, activity, &over);
	}
	waiting_close(&waiting);
}

/* --- one execution ---------------------------------------------------------------------------- */

static void write_start(struct run *run, const struct activity *activity)
{
	json_t *start = start_record(run, activity->command);

	run->began = run->interval_began;
	if (activity->describe)
		activity->describe(run, start);
	stream_write(&run->stream, start, "events", NULL);
	sink_flush(&run->stream.sink);
}

static int execute(struct run *run, const struct activity *activity, struct refusal *refusal)
{
	const struct target *target = &run->plan.target;
	int err;

	if (target->command &&
	    child_start(&run->child, target->command, &run->signals, refusal))
		return -1;
	if (counters_open(&run->counters, &run->plan, run->child.pid, &run->host, refusal))
		return -1;
	if (activity->attach && activity->attach(run, refusal))
		return -1;
	hotplug_begin(run);

	/* Counting of a command begins by itself, at its exec. */
	if (!target->command || target->cpus_given) {
		err = counters_enable(run->counters);
		if (err) {
			refuse(refusal, STATUS_REFUSED, "switching the events on");
			refusal->error = -err;
			return because(refusal, "%s", strerror(-err));
		}
	}
	begin_interval(run);
	if (target->command && child_go(&run->child, target->command, refusal))
		return -1;
	if (activity->look)
		activity->look(run);
	if (run->repeat == 1)
		write_start(run, activity);
	wait_for_end(run, activity);
	counters_disable(run->counters);
	report(run, activity, true);
	return 0;
}

static void after_execution(struct run *run, const struct activity *activity)
{
	if (activity->detach)
		activity->detach(run);
	hotplug_end(run);
	counters_close(run->counters);
	run->counters = NULL;
}

/* --- the end ---------------------------------------------------------------------------------- */

static int exit_status(const struct run *run, const struct refusal *refusal)
{
	int error = run->stream.sink.error;

	if (refusal->asked[0])
		return refusal->status;
	if (error && error != EPIPE)
		return STATUS_PARTIAL;
	if (run->child.exited && child_status(&run->child))
		return child_status(&run->child);
	/* The command outlived the run; it has no status to pass on. */
	if (run->child.pid && !run->child.exited && run->ended_by)
		return STATUS_SIGNAL + run->ended_by;
	return run->verdict;
}

static json_t *child_value(const struct child *child, pid_t pid)
{
	json_t *value = json_pack("{s:i}", "pid", (int)pid);

	if (child->exited && child_status(child) > STATUS_SIGNAL && WIFSIGNALED(child->wait_status))
		json_object_set_new(value, "signal", json_integer(child_status(child) - STATUS_SIGNAL));
	else if (child->exited)
		json_object_set_new(value, "exit_code", json_integer(child_status(child)));
	return value;
}

static void write_end(struct run *run, const struct activity *activity, int status)
{
	json_t *end = json_pack("{s:s, s:s, s:i}", "type", "end", "reason",
				run->reason ? run->reason : "refused", "exit_status", status);
	struct timespec now = now_of(CLOCK_MONOTONIC);

	json_object_set_new(end, "duration_ns",
			    json_integer(run->began.tv_sec ? nanoseconds(&run->began, &now) : 0));
	if (run->child.pid)
		json_object_set_new(end, "command", child_value(&run->child, run->child.pid));
	if (activity->finish)
		activity->finish(run, end);
	json_object_set_new(end, "overhead", overhead_value());
	json_object_set_new(end, "records", json_integer(run->stream.records + 1));
	stream_write(&run->stream, end, NULL, NULL);
}

/* Signals that end a run are read, not caught. One that was ignored when the program was started
 * (nohup, a shell's background) stays so: a blocked signal would be kept all the same. */
static void block_signals(struct run *run)
{
	static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
	sigset_t blocked;

	sigemptyset(&run->ending);
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		struct sigaction action;

		if (!sigaction(ending[i], NULL, &action) && action.sa_handler != SIG_IGN)
			sigaddset(&run->ending, ending[i]);
	}
	blocked = run->ending;
	sigaddset(&blocked, SIGPIPE);
	sigprocmask(SIG_BLOCK, &blocked, &run->signals);
}

static void repeat_executions(struct run *run, const struct activity *activity, __u64 repeats,
			      struct refusal *refusal)
{
	for (run->repeat = 1;; run->repeat++) {
		int err = execute(run, activity, refusal);

		after_execution(run, activity);
		if (err || run->repeat >= repeats || run->ended_by || run->stream.sink.error)
			return;
		child_release(&run->child);
		run->reason = NULL;
	}
}

int run_activity(const struct activity *activity, const struct options *options,
		 struct refusal *refusal)
{
	struct run run = {.activity = activity, .options = options};
	int status, err;

	run.child.go_fd = run.child.failure_fd = -1;
	run.hotplug.notices = run.hotplug.online = -1;
	*refusal = (struct refusal){0};
	if (stream_open(&run.stream, options, refusal))
		return refusal->status;
	block_signals(&run);
	err = host_gather(&run.host, options->host_root);
	if (err) {
		refuse(refusal, STATUS_REFUSED, "reading what this machine has");
		refusal->error = -err;
		because(refusal, "/sys or /proc can't be read: %s", strerror(-err));
	} else if (!host_add_tables(&run.host, options->events_dir, refusal) &&
		   !activity->plan(&run.plan, options, &run.host, refusal) &&
		   !activity->check(&run, refusal)) {
		repeat_executions(&run, activity, options->repeats, refusal);
	}

	if (refusal->asked[0])
		stream_write(&run.stream, record_error(refusal), NULL, NULL);
	write_end(&run, activity, exit_status(&run, refusal));
	if (stream_close(&run.stream) && run.stream.sink.error != EPIPE && !refusal->asked[0])
		sink_refusal(&run.stream.sink, refusal);
	status = exit_status(&run, refusal);
	if (activity->release)
		activity->release(&run);
	child_release(&run.child);
	plan_release(&run.plan);
	host_release(&run.host);
	return status;
}
