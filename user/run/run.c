// SPDX-License-Identifier: GPL-2.0-only
#include "run/run.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "activity/activity.h"
#include "activity/start.h"
#include "clock.h"
#include "option/command.h"
#include "record/overhead.h"
#include "record/record.h"
#include "session/session.h"

/* What a session's own records have for their activity, where it is not alone. */
#define SESSION "session"

/* How long a command that was told to end (SIGTERM) is waited for. Containers get ten seconds
 * before they are killed; the records are to be out long before. */
#define GRACE_NS 2000000000ULL

/* Between two tries to start an activity; each pause is twice the one before. */
#define PAUSE_LEAST_NS 1000000000ULL
#define PAUSE_MOST_NS  60000000000ULL

/* An activity of the session. */
struct running {
	struct activity activity;
	struct run *run;
	struct asked *entry;
	bool going;           /* it is open, and counts */
	bool over;            /* it has ended, or could not start, and is not tried again */
	struct source *again; /* it is tried then */
	__u64 pause_ns;
};

struct run {
	struct session session; /* the first, so that one is the other */
	struct request *request;
	read_fn again;
	struct running **members;
	size_t nr;
	int signal_fd;
	struct source *signals, *control, *grace;
	struct source **outputs; /* one a stream */
	bool unwritable;      /* no stream is left that can be written to */
	bool started;         /* the first start record was written */
};

static __u64 now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

void asked_release(struct asked *entry)
{
	if (!entry)
		return;
	options_release(&entry->options);
	json_decref(entry->value);
	free(entry->name);
	free(entry);
}

void request_release(struct request *request)
{
	for (size_t i = 0; i < request->nr_entries; i++)
		asked_release(request->entries[i]);
	free(request->entries);
	free(request->outputs);
	json_decref(request->document);
	*request = (struct request){0};
}

/* --- streams ---------------------------------------------------------------------------------- */

static int open_streams(struct run *run, struct refusal *refusal)
{
	static const struct place_of_output on_stdout;
	const struct request *request = run->request;
	struct session *session = &run->session;
	/* A line of output that only one command has a format for is for that command. */
	const char *command = session->alone ? request->entries[0]->options.command->name : NULL;

	size_t nr = request->check ? 1 : request->nr_outputs;

	session->streams = calloc(nr, sizeof(*session->streams));
	run->outputs = calloc(nr, sizeof(*run->outputs));
	for (size_t i = 0; i < nr; i++) {
		struct stream *stream = &session->streams[i];
		const struct options *options = &request->entries[0]->options;

		if (stream_open(stream, request->check ? &on_stdout : &request->outputs[i], command, refusal))
			return -1;
		session->nr_streams++;
		memcpy(stream->run_id, session->streams[0].run_id, sizeof(stream->run_id));
		stream->verbose = request->verbose;
		stream->intervals = !session->alone || options->interval_ms || options->control;
	}
	return 0;
}

static void unwritable(struct session *session);

static void flush(struct run *run)
{
	if (session_flush(&run->session))
		unwritable(&run->session);
}

static int write_own(struct run *run, json_t *record)
{
	struct session *session = &run->session;

	return session_write(session, record, session->alone ? run->members[0]->activity.name : SESSION);
}

/* --- records of begin and end ----------------------------------------------------------------- */

static void put_resource(const struct run *run, json_t *start)
{
	const json_t *resource = run->request->resource;

	if (resource)
		json_object_update(json_object_get(start, "resource"), (json_t *)resource);
}

static void write_session_start(struct run *run)
{
	json_t *start = start_base(&run->session.host, "run"), *activities = json_array();

	for (size_t i = 0; i < run->nr; i++)
		json_array_append_new(activities, json_pack("{s:s, s:s}", "name", run->members[i]->entry->name,
							    "command", run->members[i]->activity.command));
	json_object_set_new(start, "config", value_text(run->request->config, 1024));
	json_object_set_new(start, "activities", activities);
	put_resource(run, start);
	write_own(run, start);
}

static void write_start(struct running *member)
{
	struct activity *activity = &member->activity;
	json_t *start = start_base(&activity->session->host, activity->command);

	start_put_activity(start, activity);
	put_resource(member->run, start);
	activity_write(activity, start);
}

static json_t *end_base(const char *reason, const struct timespec *began)
{
	struct timespec now = now_of(CLOCK_MONOTONIC);

	return json_pack("{s:s, s:s, s:I}", "type", "end", "reason", reason ? reason : "refused",
			 "duration_ns",
			 (json_int_t)(began->tv_sec ? timespec_ns(&now) - timespec_ns(began) : 0));
}

static void put_activity_end(struct activity *activity, json_t *end)
{
	if (activity->ops && activity->ops->finish)
		activity->ops->finish(activity, end);
	if (activity->reader && activity->began.tv_sec)
		json_object_set_new(end, "names", reader_value(activity->reader));
}

/* Of one among several; one that is alone ends with the session. */
static void write_activity_end(struct running *member)
{
	struct activity *activity = &member->activity;
	json_t *end = end_base(activity->reason ? activity->reason : member->run->session.reason,
			       &activity->began);

	put_activity_end(activity, end);
	activity_write(activity, end);
}

static json_t *child_value(const struct child *child)
{
	json_t *value = json_pack("{s:i}", "pid", (int)child->pid);

	if (child->exited && child_status(child) > STATUS_SIGNAL && WIFSIGNALED(child->wait_status))
		json_object_set_new(value, "signal", json_integer(child_status(child) - STATUS_SIGNAL));
	else if (child->exited)
		json_object_set_new(value, "exit_code", json_integer(child_status(child)));
	return value;
}

/* Each stream says how many records it has. */
static void write_session_end(struct run *run, int status)
{
	struct session *session = &run->session;
	json_t *end = end_base(session->reason, &session->began);

	json_object_set_new(end, "exit_status", json_integer(status));
	if (session->child.pid)
		json_object_set_new(end, "command", child_value(&session->child));
	if (session->alone)
		put_activity_end(&run->members[0]->activity, end);
	json_object_set_new(end, "overhead", overhead_value(session->self));
	for (size_t i = 0; i < session->nr_streams; i++) {
		struct stream *stream = &session->streams[i];
		json_t *own = json_copy(end);

		json_object_set_new(own, "records", json_integer(stream->records + 1));
		stream_write(stream, own, session->alone ? run->members[0]->activity.name : SESSION);
	}
	json_decref(end);
}

/* --- members ---------------------------------------------------------------------------------- */

static bool any_left(const struct run *run)
{
	for (size_t i = 0; i < run->nr; i++)
		if (!run->members[i]->over)
			return true;
	return false;
}

static size_t how_many_go(const struct run *run)
{
	size_t nr = 0;

	for (size_t i = 0; i < run->nr; i++)
		nr += run->members[i]->going;
	return nr;
}

static void on_try_again(void *context);

static void close_member(struct running *member)
{
	activity_close(&member->activity);
	activity_release(&member->activity);
	member->going = false;
}

/* It could not start, or can't go on. */
static void give_up(struct running *member, const struct refusal *refusal)
{
	struct run *run = member->run;

	close_member(member);
	session_write(&run->session, record_error(refusal), member->activity.name);
	member->over = !member->entry->retry;
	if (member->over)
		return;
	member->pause_ns = !member->pause_ns			     ? PAUSE_LEAST_NS
			   : 2 * member->pause_ns < PAUSE_MOST_NS ? 2 * member->pause_ns
								    : PAUSE_MOST_NS;
	member->again = loop_at(run->session.loop, now_ns() + member->pause_ns, on_try_again, member);
}

static int plan_member(struct running *member, struct refusal *refusal)
{
	struct asked *entry = member->entry;

	member->activity = (struct activity){
		.name = entry->name, .command = entry->options.command->name, .options = &entry->options,
		.session = &member->run->session,
	};
	return activity_plan(&member->activity, refusal);
}

/* While the session goes on: plans, opens and begins. */
static int start_member(struct running *member, struct refusal *refusal)
{
	struct activity *activity = &member->activity;

	if (plan_member(member, refusal) || activity_open(activity, refusal) ||
	    activity_begin(activity, true, refusal))
		return -1;
	member->going = true;
	member->pause_ns = 0;
	write_start(member);
	activity_wait(activity);
	return 0;
}

static void on_try_again(void *context)
{
	struct running *member = context;
	struct refusal refusal = {0};

	member->again = NULL;
	if (start_member(member, &refusal))
		give_up(member, &refusal);
	flush(member->run);
}

/* The last report and the end of one of several. */
static void finish_member(struct running *member)
{
	struct activity *activity = &member->activity;

	activity_wait_no_more(activity);
	counters_disable(activity->counters);
	activity_report(activity, true);
	write_activity_end(member);
	close_member(member);
}

/* --- the end, as it comes --------------------------------------------------------------------- */

static void on_grace_over(void *context)
{
	struct run *run = context;

	run->grace = NULL;
	loop_stop(run->session.loop);
}

/* Ends the session: the command, if there is one, is told to end and given some time. */
static void end_session(struct run *run, const char *reason, bool tell_command)
{
	struct session *session = &run->session;

	if (!session->reason)
		session->reason = reason;
	if (!session->child.pid || session->child.exited) {
		loop_stop(session->loop);
		return;
	}
	if (tell_command)
		kill(session->child.pid, SIGTERM);
	if (!run->grace)
		run->grace = loop_at(session->loop, now_ns() + GRACE_NS, on_grace_over, run);
}

static struct running *member_of(struct activity *activity)
{
	return (struct running *)activity;
}

/* An activity has had enough: the last one takes the session with it. */
static void on_enough(struct session *session, struct activity *activity, const char *reason)
{
	struct run *run = (struct run *)session;
	struct running *member = member_of(activity);
	bool gone = !strcmp(reason, "exited");

	activity->reason = activity->reason ? activity->reason : reason;
	if (session->alone || (how_many_go(run) == 1 && !member->entry->retry)) {
		if (!session->reason || !session->child.pid)
			end_session(run, reason, true);
		return;
	}
	finish_member(member);
	member->over = !(gone && member->entry->retry);
	if (!member->over)
		member->again = loop_at(session->loop, now_ns() + PAUSE_LEAST_NS, on_try_again, member);
	flush(run);
}

/* Nothing more can be written. The command goes on; its status is still to be passed on. */
static void unwritable(struct session *session)
{
	struct run *run = (struct run *)session;

	if (run->unwritable)
		return;
	run->unwritable = true;
	for (size_t i = 0; i < run->nr; i++)
		activity_wait_no_more(&run->members[i]->activity);
	if (!run->session.child.pid)
		loop_stop(run->session.loop);
}

static void on_output(void *context, short events)
{
	struct run *run = context;

	for (size_t i = 0; i < run->session.nr_streams; i++) {
		struct pollfd end = {.fd = run->session.streams[i].sink.fd};

		if (!run->outputs[i] || poll(&end, 1, 0) <= 0 || !(end.revents & (POLLERR | POLLHUP)))
			continue;
		if (!run->session.streams[i].sink.error)
			run->session.streams[i].sink.error = EPIPE;
		loop_remove(run->session.loop, &run->outputs[i]);
	}
	flush(run);
}

static void on_command_ended(struct run *run)
{
	struct session *session = &run->session;

	if (!session->child.pid || !child_reap(&session->child))
		return;
	if (!session->reason)
		session->reason = "exited";
	loop_stop(session->loop);
}

static void reload(struct run *run);

static void on_signal(void *context, short events)
{
	struct run *run = context;
	struct session *session = &run->session;
	struct signalfd_siginfo info;

	while (read(run->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			on_command_ended(run);
			continue;
		}
		if (info.ssi_signo == SIGHUP && run->again) {
			reload(run);
			continue;
		}
		/* A second signal means now: nothing more is written. */
		if (session->ended_by)
			_exit(STATUS_SIGNAL + info.ssi_signo);
		session->ended_by = info.ssi_signo;
		/* The terminal sends ^C to the command as well. */
		end_session(run, info.ssi_signo == SIGINT ? "interrupted" : "terminated",
			    info.ssi_code != SI_KERNEL);
	}
}

/* Signals that end a session are read, not caught. One that was ignored when the program was started
 * (nohup, a shell's background) stays so: a blocked signal would be kept all the same. */
static void block_signals(struct run *run)
{
	static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
	struct session *session = &run->session;
	sigset_t blocked;

	sigemptyset(&session->ending);
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		struct sigaction action;

		if (!sigaction(ending[i], NULL, &action) &&
		    (action.sa_handler != SIG_IGN || (ending[i] == SIGHUP && run->again)))
			sigaddset(&session->ending, ending[i]);
	}
	/* Ignored, it would take the command's status with it. */
	signal(SIGCHLD, SIG_DFL);
	sigaddset(&session->ending, SIGCHLD);
	blocked = session->ending;
	sigaddset(&blocked, SIGPIPE);
	sigprocmask(SIG_BLOCK, &blocked, &session->signals);
}

/* --- control ---------------------------------------------------------------------------------- */

static void obey_for(struct running *member, enum control_command command, bool *done)
{
	struct activity *activity = &member->activity;

	switch (command) {
	case CONTROL_ENABLE:
	case CONTROL_DISABLE:
		*done = !activity_switch(activity, command == CONTROL_ENABLE) && *done;
		break;
	case CONTROL_SNAPSHOT:
		activity_report(activity, false);
		break;
	case CONTROL_STOP:
		on_enough(activity->session, activity, "stopped");
		break;
	default:
		break;
	}
}

/* Returns whether it is to be acknowledged. */
static bool obey(struct run *run, enum control_command command, const char *name)
{
	bool done = true, found = command == CONTROL_PING;

	if (command == CONTROL_UNKNOWN)
		return false;
	for (size_t i = 0; i < run->nr; i++) {
		struct running *member = run->members[i];

		if (!member->going || (*name && strcmp(name, member->entry->name)))
			continue;
		found = true;
		obey_for(member, command, &done);
	}
	if (!found && *name)
		fprintf(stderr, "nhmtap: option --control: no activity '%.64s' is going\n", name);
	return found && done;
}

static void on_control(void *context, short events)
{
	struct run *run = context;
	struct session *session = &run->session;
	enum control_command command;
	const char *name;

	while (!session->reason && (command = control_next(&session->control, &name))) {
		bool done = obey(run, command, name);

		flush(run);
		if (done)
			control_acknowledge(&session->control);
	}
	if (session->control.fd < 0)
		loop_remove(session->loop, &run->control);
}

/* --- HUP -------------------------------------------------------------------------------------- */

static struct running *add_member(struct run *run, struct asked *entry)
{
	struct running *member = calloc(1, sizeof(*member));

	run->members = realloc(run->members, (run->nr + 1) * sizeof(*run->members));
	member->run = run;
	member->entry = entry;
	member->activity.session = &run->session;
	return run->members[run->nr++] = member;
}

static void remove_member(struct run *run, struct running *member)
{
	size_t i = 0;

	while (run->members[i] != member)
		i++;
	memmove(&run->members[i], &run->members[i + 1], (--run->nr - i) * sizeof(*run->members));
	loop_remove(run->session.loop, &member->again);
	if (member->going)
		finish_member(member);
	asked_release(member->entry);
	free(member);
}

static size_t place_of_entry(const struct request *request, const struct asked *entry)
{
	size_t i = 0;

	while (i < request->nr_entries &&
	       (!request->entries[i] || !json_equal(request->entries[i]->value, entry->value)))
		i++;
	return i;
}

/* An activity whose entry is the same goes on; others end, or begin. */
static void replace_members(struct run *run, struct request *request)
{
	for (size_t m = run->nr; m--;) {
		size_t same = place_of_entry(request, run->members[m]->entry);

		if (same == request->nr_entries) {
			if (run->members[m]->going)
				run->members[m]->activity.reason = "reloaded";
			remove_member(run, run->members[m]);
			continue;
		}
		asked_release(request->entries[same]);
		request->entries[same] = NULL;
	}
	for (size_t i = 0; i < request->nr_entries; i++) {
		struct refusal refusal = {0};
		struct running *member;

		if (!request->entries[i])
			continue;
		member = add_member(run, request->entries[i]);
		request->entries[i] = NULL;
		if (start_member(member, &refusal))
			give_up(member, &refusal);
	}
	request->nr_entries = 0;
}

static void watch_outputs(struct run *run)
{
	struct session *session = &run->session;

	/* No events are asked for: that its reader has gone is told all the same. */
	for (size_t i = 0; i < session->nr_streams; i++)
		run->outputs[i] = loop_watch(session->loop, session->streams[i].sink.fd, 0, on_output, run);
}

static void reopen_outputs(struct run *run)
{
	struct session *session = &run->session;

	for (size_t i = 0; i < session->nr_streams; i++) {
		loop_remove(session->loop, &run->outputs[i]);
		sink_reopen(&session->streams[i].sink);
	}
	watch_outputs(run);
}

static void reload(struct run *run)
{
	struct request request = {0};
	struct refusal refusal = {0};

	if (run->session.reason)
		return;
	reopen_outputs(run);
	if (run->again(&request, run->request, &refusal))
		write_own(run, record_error(&refusal));
	else
		replace_members(run, &request);
	request_release(&request);
	flush(run);
	if (!any_left(run))
		end_session(run, "exited", true);
}

/* --- one execution ---------------------------------------------------------------------------- */

/* Several: one that can't be opened is told, and the others go on. Returns -1 where none is left. */
static int open_members(struct run *run, struct refusal *refusal)
{
	size_t open = 0, waiting = 0;

	for (size_t i = 0; i < run->nr; i++) {
		struct running *member = run->members[i];
		struct refusal own = {0};

		if (member->over || member->again) {
			waiting += member->again != NULL;
			continue;
		}
		if (!activity_open(&member->activity, &own)) {
			open++;
			member->going = true;
			continue;
		}
		if (!refusal->asked[0])
			*refusal = own;
		if (run->session.alone)
			return -1;
		give_up(member, &own);
		waiting += member->again != NULL;
	}
	if (!open && !waiting)
		return -1;
	*refusal = (struct refusal){0};
	return 0;
}

static int begin_members(struct run *run, struct refusal *refusal)
{
	for (size_t i = 0; i < run->nr; i++) {
		struct running *member = run->members[i];
		struct refusal own = {0};

		if (!member->going || !activity_begin(&member->activity, false, &own))
			continue;
		if (run->session.alone) {
			*refusal = own;
			return -1;
		}
		give_up(member, &own);
	}
	return 0;
}

static void write_starts(struct run *run)
{
	struct session *session = &run->session;

	session->began = run->nr && run->members[0]->going ? run->members[0]->activity.interval_began
							   : now_of(CLOCK_MONOTONIC);
	for (size_t i = 0; i < run->nr; i++)
		if (run->members[i]->going)
			write_start(run->members[i]);
	session_flush(session);
}

static void wait_for_end(struct run *run)
{
	struct session *session = &run->session;

	counters_free_descriptors();
	run->signal_fd = signalfd(-1, &session->ending, SFD_CLOEXEC | SFD_NONBLOCK);
	run->signals = loop_watch(session->loop, run->signal_fd, POLLIN, on_signal, run);
	if (session->control.fd >= 0)
		run->control = loop_watch(session->loop, session->control.fd, POLLIN, on_control, run);
	watch_outputs(run);
	for (size_t i = 0; i < run->nr; i++)
		if (run->members[i]->going)
			activity_wait(&run->members[i]->activity);
	on_command_ended(run); /* it may have ended before anybody looked */
	if (!session->reason)
		loop_run(session->loop);
	for (size_t i = 0; i < run->nr; i++) {
		activity_wait_no_more(&run->members[i]->activity);
		loop_remove(session->loop, &run->members[i]->again);
	}
	for (size_t i = 0; i < session->nr_streams; i++)
		loop_remove(session->loop, &run->outputs[i]);
	loop_remove(session->loop, &run->control);
	loop_remove(session->loop, &run->grace);
	loop_remove(session->loop, &run->signals);
	close(run->signal_fd);
}

/* All are switched off before the first is reported. */
static void report_last(struct run *run)
{
	for (size_t i = 0; i < run->nr; i++)
		if (run->members[i]->going)
			counters_disable(run->members[i]->activity.counters);
	for (size_t i = 0; i < run->nr; i++)
		if (run->members[i]->going)
			activity_report(&run->members[i]->activity, true);
	for (size_t i = 0; i < run->nr; i++)
		if (run->members[i]->going && !run->session.alone)
			write_activity_end(run->members[i]);
}

static int execute(struct run *run, struct refusal *refusal)
{
	struct session *session = &run->session;

	if (session->command && child_start(&session->child, session->command, &session->signals, refusal))
		return -1;
	if (open_members(run, refusal) || begin_members(run, refusal) ||
	    (session->command && child_go(&session->child, session->command, refusal)))
		return -1;
	if (session->repeat == 1)
		write_starts(run);
	wait_for_end(run);
	report_last(run);
	return 0;
}

static void execute_repeatedly(struct run *run, __u64 repeats, struct refusal *refusal)
{
	struct session *session = &run->session;

	for (session->repeat = 1;; session->repeat++) {
		int err = execute(run, refusal);

		for (size_t i = 0; i < run->nr; i++) {
			activity_close(&run->members[i]->activity);
			run->members[i]->going = false;
		}
		if (err || session->repeat >= repeats || session->ended_by || run->unwritable)
			return;
		child_release(&session->child);
		session->reason = NULL;
	}
}

/* --- the whole -------------------------------------------------------------------------------- */

static int stream_error(const struct session *session)
{
	for (size_t i = 0; i < session->nr_streams; i++)
		if (session->streams[i].sink.error)
			return session->streams[i].sink.error;
	return 0;
}

static int exit_status(const struct run *run, const struct refusal *refusal)
{
	const struct session *session = &run->session;
	int error = stream_error(session);

	if (refusal->asked[0])
		return refusal->status;
	if (error && error != EPIPE)
		return STATUS_PARTIAL;
	if (session->child.exited && child_status(&session->child))
		return child_status(&session->child);
	/* The command outlived the session; it has no status to pass on. */
	if (session->child.pid && !session->child.exited && session->ended_by)
		return STATUS_SIGNAL + session->ended_by;
	return session->verdict;
}

/* What is asked for wrongly ends a session before it begins; what this machine has not ends one activity. */
static int plan_members(struct run *run, struct refusal *refusal)
{
	for (size_t i = 0; i < run->nr; i++) {
		struct running *member = run->members[i];

		if (!plan_member(member, refusal))
			continue;
		if (run->session.alone || refusal->status == STATUS_USAGE)
			return -1;
		give_up(member, refusal);
		if (any_left(run))
			*refusal = (struct refusal){0};
	}
	return refusal->asked[0] ? -1 : 0;
}

/* All that is known before anything is opened. */
static int prepare(struct run *run, struct refusal *refusal)
{
	const struct request *request = run->request;
	struct session *session = &run->session;
	int err = host_gather(&session->host, request->host_root);

	if (err) {
		refuse(refusal, STATUS_REFUSED, "reading what this machine has");
		refusal->error = -err;
		return because(refusal, "/sys or /proc can't be read: %s", strerror(-err));
	}
	session->loop = loop_open();
	if (!session->loop) {
		err = errno;
		refuse(refusal, STATUS_REFUSED, "waiting for events");
		refusal->error = err;
		return because(refusal, "the kernel gives no epoll descriptor: %s", strerror(err));
	}
	session->names = names_new(&session->host, session->loop, request->names_bytes);
	if (host_core_pmu(&session->host) && !request->check)
		session->self = self_begin();
	if (host_add_tables(&session->host, request->events_dir, refusal))
		return -1;
	if (!session->alone)
		write_session_start(run);
	if (plan_members(run, refusal))
		return -1;
	return request->check ? 0 : control_open(&session->control, request->control, refusal);
}

/* Says what would be opened. */
static void check(struct run *run)
{
	for (size_t i = 0; i < run->nr; i++)
		if (!run->members[i]->over && !run->members[i]->again)
			write_start(run->members[i]);
	run->session.reason = "checked";
}

static void close_streams(struct run *run, struct refusal *refusal)
{
	struct session *session = &run->session;

	for (size_t i = 0; i < session->nr_streams; i++) {
		struct stream *stream = &session->streams[i];

		if (stream_close(stream) && stream->sink.error != EPIPE && !refusal->asked[0])
			sink_refusal(&stream->sink, refusal);
	}
}

static void release(struct run *run)
{
	struct session *session = &run->session;

	for (size_t i = 0; i < run->nr; i++) {
		activity_release(&run->members[i]->activity);
		asked_release(run->members[i]->entry);
		free(run->members[i]);
	}
	free(run->members);
	names_release(session->names);
	loop_close(session->loop);
	child_release(&session->child);
	control_close(&session->control);
	self_end(session->self);
	host_release(&session->host);
	free(session->streams);
	free(run->outputs);
}

int run_session(struct request *request, read_fn again, struct refusal *refusal)
{
	struct run run = {.request = request, .again = again};
	struct session *session = &run.session;
	int status, err;

	session->alone = !request->config;
	session->command = request->command;
	session->enough = on_enough;
	session->unwritable = unwritable;
	session->child.go_fd = session->child.failure_fd = -1;
	session->control.fd = session->control.ack_fd = -1;
	session->notices = (struct notices)NOTICES_CLOSED;
	*refusal = (struct refusal){0};
	if (open_streams(&run, refusal)) {
		close_streams(&run, refusal);
		release(&run);
		return refusal->status;
	}
	for (size_t i = 0; i < request->nr_entries; i++) {
		add_member(&run, request->entries[i]);
		run.members[i]->activity.name = request->entries[i]->name;
		run.members[i]->activity.command = request->entries[i]->options.command->name;
	}
	request->nr_entries = 0;
	block_signals(&run);
	err = prepare(&run, refusal);
	if (!err && request->check)
		check(&run);
	else if (!err)
		execute_repeatedly(&run, run.members[0]->entry->options.repeats, refusal);
	if (refusal->asked[0])
		write_own(&run, record_error(refusal));
	write_session_end(&run, exit_status(&run, refusal));
	close_streams(&run, refusal);
	status = exit_status(&run, refusal);
	release(&run);
	return status;
}

int run_one(struct options *options, struct refusal *refusal)
{
	struct place_of_output output = {.path = options->output, .format = options->format};
	struct asked *entry = calloc(1, sizeof(*entry));
	struct request request = {
		.entries = &entry, .nr_entries = 1, .outputs = &output, .nr_outputs = 1,
		.command = options->nr_rest ? options->rest : NULL, .control = options->control,
		.events_dir = options->events_dir, .host_root = options->host_root,
		.verbose = options->verbose,
	};

	/* The entry takes over what the options own. */
	*entry = (struct asked){.name = strdup(options->command->name), .options = *options};
	*options = (struct options){0};
	return run_session(&request, NULL, refusal);
}
