// SPDX-License-Identifier: GPL-2.0-only
#include "run/parts.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "activity/life.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/note.h"
#include "base/visible.h"
#include "collection/msr_counters.h"
#include "host/privileges.h"
#include "output/progress.h"
#include "run/watch.h"

static void quit(int number)
{
	/* Allowed in a signal handler, since it only makes system calls: put_back(). */
	msr_counters_put_back(); /* NOLINT(bugprone-signal-handler) */
	progress_abandon();	 /* NOLINT(bugprone-signal-handler) */
	_exit(STATUS_SIGNAL + number);
}

/* A second signal, later than SOON_NS: the program ends at once, and the command gets this one too. If it
 * came from the terminal, the command has it already, and is told that the terminal becomes the shell's
 * again. */
static void give_up_waiting(int number, bool from_terminal)
{
	pid_t command = command_waited_for(); /* NOLINT(bugprone-signal-handler): it only reads */

	if (command > 0)
		kill(command, from_terminal ? SIGHUP : number);
	quit(number);
}

/* The first signal. Written before on_second() can be called. */
static struct {
	int number;
	__u64 ns; /* CLOCK_MONOTONIC */
} first;

/* Whether a signal asks for the same as the first one. timeout(1) sends each signal to its command, and at
 * once to the process group; a closed terminal's HUP comes from the kernel and from the shell; a program that
 * is interrupted at the terminal terminates what it has started, which was interrupted, too. If this were
 * taken for a second signal, the records would be lost, or not, by chance. The command gets what others would
 * send to it, except a signal that it has already. */
static bool is_the_first(int number, bool from_terminal)
{
	pid_t command = command_waited_for(); /* NOLINT(bugprone-signal-handler): it only reads */

	if (clock_ns(CLOCK_MONOTONIC) - first.ns >= SOON_NS) /* NOLINT(bugprone-signal-handler) */
		return false;
	if (command > 0 && number != first.number && !from_terminal)
		kill(command, number);
	return true;
}

static void on_second(int number, siginfo_t *info, void *context)
{
	int error = errno;

	if (!is_the_first(number, info->si_code == SI_KERNEL))
		give_up_waiting(number, info->si_code == SI_KERNEL);
	errno = error;
}

/* Ends the program by the signal's default action. Process 1 must exit instead, because default actions do
 * not end it. */
static void die(int number)
{
	sigset_t this;

	sigemptyset(&this);
	sigaddset(&this, number);
	signal(number, SIG_DFL);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &this, NULL);
	quit(number);
}

/* Makes a second signal end the program at once, even if the loop is blocked: it is handled by on_second()
 * instead of being read. */
static void catch_next(const struct run *run)
{
	sigset_t next = run->session.ending;

	sigdelset(&next, SIGCHLD);
	if (run->again || has_files(run))
		sigdelset(&next, SIGHUP);
	sigprocmask(SIG_UNBLOCK, &next, NULL);
}

static void on_hangup(struct run *run)
{
	privileges_lower();
	if (run->again && !run->draining)
		reload(run);
	else if (!run->again)
		reopen_outputs(run);
	privileges_raise();
}

/* Signals that mean something to the command alone. nhmtap may be what others take for it: a container's
 * first process, which the kernel doesn't end by them, or a service's. */
static const int the_commands[] = {SIGUSR1, SIGUSR2};

static bool is_the_commands(int number)
{
	for (size_t i = 0; i < ARRAY_SIZE(the_commands); i++)
		if (the_commands[i] == number)
			return true;
	return false;
}

static void pass_on(const struct session *session, int number)
{
	note("signal %d is the command's", number);
	if (has_command(session))
		kill(session->child.pid, number);
}

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
		if (info.ssi_signo == SIGHUP && (run->again || has_files(run))) {
			on_hangup(run);
			continue;
		}
		if (is_the_commands(info.ssi_signo)) {
			pass_on(session, info.ssi_signo);
			continue;
		}
		if (session->ended_by) {
			if (!is_the_first(info.ssi_signo, info.ssi_code == SI_KERNEL))
				give_up_waiting(info.ssi_signo, info.ssi_code == SI_KERNEL);
			continue;
		}
		session->ended_by = info.ssi_signo;
		run->ended_ns = clock_ns(CLOCK_MONOTONIC);
		first.number = info.ssi_signo;
		first.ns = run->ended_ns;
		note("signal %u from process %u", info.ssi_signo, info.ssi_pid);
		if (run->draining)
			limit_drain(run);
		else /* ^C at the terminal has reached the command already. */
			end_session(run, info.ssi_signo == SIGINT ? "interrupted" : "terminated",
				    info.ssi_code == SI_KERNEL ? 0 : info.ssi_signo);
		catch_next(run);
	}
}

static void on_change(void *context, short events)
{
	struct run *run = context;
	int changed = watch_take(run->watcher);

	if (changed > 0) {
		note("CONFIG has changed");
		on_hangup(run);
	} else if (changed < 0) {
		say("nhmtap: the process that watches CONFIG has ended; SIGHUP reads it again");
		loop_remove(run->session.loop, &run->watched);
	}
}

void listen_to_changes(struct run *run)
{
	run->watcher = run->request->watcher;
	if (run->again && run->watcher && run->watcher->pid)
		run->watched = loop_watch(run->session.loop, run->watcher->socket, POLLIN, on_change, run);
}

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
#define ENDING ARRAY_SIZE(ending)

/* Whether a signal is ignored. If it was ignored when the program was started (by nohup, or a shell's
 * background job), it remains so. */
static bool is_ignored(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) || action.sa_handler == SIG_IGN;
}

void catch_signals(struct run *run)
{
	struct session *session = &run->session;

	sigprocmask(SIG_SETMASK, NULL, &session->inherited.signals);
	session->inherited.limited = !getrlimit(RLIMIT_NOFILE, &session->inherited.descriptors);
	for (size_t i = 0; i < ENDING; i++)
		if (!is_ignored(ending[i]))
			signal(ending[i], die);
}

/* Signals that end the session are read by signalfd. Ignored ones are not blocked, because a blocked signal
 * is kept even if it is ignored. */
int signals_block(struct run *run, struct refusal *refusal)
{
	struct session *session = &run->session;
	struct sigaction second = {.sa_sigaction = on_second, .sa_flags = SA_SIGINFO | SA_RESTART};
	sigset_t taken, blocked;

	sigemptyset(&session->ending);
	for (size_t i = 0; i < ENDING; i++)
		if (!is_ignored(ending[i]) || (ending[i] == SIGHUP && (run->again || has_files(run))))
			sigaddset(&session->ending, ending[i]);
	/* If SIGCHLD were ignored, the command's status would be lost. */
	signal(SIGCHLD, SIG_DFL);
	sigaddset(&session->ending, SIGCHLD);
	taken = session->ending;
	for (size_t i = 0; session->command && i < ARRAY_SIZE(the_commands); i++)
		if (!is_ignored(the_commands[i]))
			sigaddset(&taken, the_commands[i]);
	blocked = taken;
	sigaddset(&blocked, SIGPIPE);
	if (sigprocmask(SIG_BLOCK, &blocked, NULL))
		return refuse_to_wait(refusal, errno, "signals can't be blocked");
	for (size_t i = 0; i < ENDING; i++)
		if (!is_ignored(ending[i]))
			sigaction(ending[i], &second, NULL);
	run->signal_fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	return run->signal_fd < 0 ? refuse_to_wait(refusal, errno, "the kernel gives no signalfd") : 0;
}

int refuse_to_wait(struct refusal *refusal, int error, const char *what)
{
	refuse(refusal, STATUS_REFUSED, "waiting for events");
	refusal->error = error;
	return because(refusal, "%s: %s", what, strerror(error));
}

void listen_to_signals(struct run *run)
{
	run->signals = loop_watch(run->session.loop, run->signal_fd, POLLIN, on_signal, run);
}

void listen_no_more(struct run *run)
{
	loop_remove(run->session.loop, &run->signals);
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

/* Executes a command. Returns whether it is to be acknowledged. */
static bool obey(struct run *run, enum control_command command, const char *name)
{
	bool done = true, found = command == CONTROL_PING;

	if (command == CONTROL_UNKNOWN)
		return false;
	for (size_t i = 0; i < run->nr; i++) {
		struct running *member = run->members[i];

		if (command == CONTROL_STOP && member->again &&
		    (!*name || !strcmp(name, member->asked->name))) {
			found = true;
			try_no_more(member);
		}
		if (!member->going || (*name && strcmp(name, member->asked->name)))
			continue;
		found = true;
		obey_for(member, command, &done);
	}
	if (!found && *name)
		say("nhmtap: option --control: no activity '%.64s' is going", name);
	return found && done;
}

void on_control(void *context, short events)
{
	struct run *run = context;
	struct session *session = &run->session;
	enum control_command command;
	const char *name;

	while ((!session->reason || has_command(session)) &&
	       (command = control_next(&session->control, &name))) {
		bool done = obey(run, command, name);

		flush(run);
		if (done)
			control_acknowledge(&session->control);
	}
	if (!session->control.ended)
		return;
	/* The order matters: if another descriptor of the same pipe is open, epoll would still watch it after
	 * closing. */
	loop_remove(session->loop, &run->control);
	control_close(&session->control);
}
