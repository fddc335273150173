// SPDX-License-Identifier: GPL-2.0-only
#include "run/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "record/overhead.h"
#include "record/record.h"
#include "run/addresses.h"
#include "run/start.h"
#include "run/waiting.h"

static __u64 nanoseconds(const struct timespec *from, const struct timespec *to)
{
	return timespec_ns(to) - timespec_ns(from);
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
	json_object_set_new_nocheck(record, "start_time", value_time(&run->interval_began_at));
	json_object_set_new_nocheck(record, "duration_ns", json_integer(run_interval_ns(run)));
}

static void begin_interval(struct run *run)
{
	run->interval_began = now_of(CLOCK_MONOTONIC);
	run->interval_began_at = now_of(CLOCK_REALTIME);
}

int run_switch(struct run *run, bool on)
{
	int err = on ? counters_enable(run->counters) : counters_disable(run->counters);

	if (!err) {
		run->off = !on;
		run->was_off = true;
	}
	return err;
}

void run_begin_late(struct run *run)
{
	run_switch(run, true);
	run->was_off = false;
	begin_interval(run);
}

void run_report(struct run *run, bool last)
{
	struct timespec ended_at = now_of(CLOCK_REALTIME);

	run->interval_ended = now_of(CLOCK_MONOTONIC);
	hotplug_check(run, last);
	run->activity->report(run, last);
	if (run->addresses)
		addresses_begin(run->addresses, &run->interval_ended);
	hotplug_next(run);
	run->was_off = run->off;
	run->interval_began = run->interval_ended;
	run->interval_began_at = ended_at;
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
	run->off = run->was_off = run->options->delay_ms;
	if (!run->off && (!target->command || target->cpus_given)) {
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
	if (run->repeat == 1)
		write_start(run, activity);
	wait_for_end(run);
	counters_disable(run->counters);
	run_report(run, true);
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
	if (run->addresses && run->began.tv_sec)
		json_object_set_new(end, "names", addresses_value(run->addresses));
	json_object_set_new(end, "overhead", overhead_value(run->self));
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

/* All that is known before anything is opened. */
static int prepare(struct run *run, struct refusal *refusal)
{
	const struct activity *activity = run->activity;
	const struct options *options = run->options;
	int err = host_gather(&run->host, options->host_root);

	if (err) {
		refuse(refusal, STATUS_REFUSED, "reading what this machine has");
		refusal->error = -err;
		return because(refusal, "/sys or /proc can't be read: %s", strerror(-err));
	}
	if (host_core_pmu(&run->host))
		run->self = self_begin();
	if (host_add_tables(&run->host, options->events_dir, refusal) ||
	    activity->plan(&run->plan, options, &run->host, refusal) ||
	    activity->check(run, refusal))
		return -1;
	return control_open(&run->control, options->control, refusal);
}

int run_activity(const struct activity *activity, const struct options *options,
		 struct refusal *refusal)
{
	struct run run = {.activity = activity, .options = options};
	int status;

	run.child.go_fd = run.child.failure_fd = -1;
	run.control.fd = run.control.ack_fd = -1;
	run.hotplug.notices = run.hotplug.online = -1;
	*refusal = (struct refusal){0};
	if (stream_open(&run.stream, options, refusal))
		return refusal->status;
	block_signals(&run);
	if (!prepare(&run, refusal))
		repeat_executions(&run, activity, options->repeats, refusal);
	if (refusal->asked[0])
		stream_write(&run.stream, record_error(refusal), NULL, NULL);
	write_end(&run, activity, exit_status(&run, refusal));
	if (stream_close(&run.stream) && run.stream.sink.error != EPIPE && !refusal->asked[0])
		sink_refusal(&run.stream.sink, refusal);
	status = exit_status(&run, refusal);
	if (activity->release)
		activity->release(&run);
	addresses_close(run.addresses);
	child_release(&run.child);
	control_close(&run.control);
	self_end(run.self);
	plan_release(&run.plan);
	host_release(&run.host);
	return status;
}
