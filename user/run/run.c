// SPDX-License-Identifier: GPL-2.0-only
#include "run/parts.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "activity/life.h"
#include "activity/warning.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "base/memory.h"
#include "base/note.h"
#include "base/visible.h"
#include "collection/trial.h"
#include "host/kernel.h"
#include "host/privileges.h"
#include "option/command.h"
#include "record/record.h"
#include "run/resource.h"
#include "run/uses.h"

/* --- one execution ---------------------------------------------------------------------------- */

/* Opens all activities. If one of several can't be opened, this is reported, and the others continue. Returns
 * -1 if none is left. */
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

/* The command is executed now, or can't be. */
static void on_begun(void *context, short events)
{
	struct run *run = context;
	struct session *session = &run->session;

	/* Before the descriptor is closed. */
	loop_remove(session->loop, &run->beginning);
	if (child_begin(&session->child, session->command, &run->unexecuted))
		loop_stop(session->loop);
}

/* The command's program may be on a file system that does not answer. */
static void await_command(struct run *run)
{
	struct session *session = &run->session;

	if (!child_is_beginning(&session->child))
		return;
	note("process %d has not executed its program yet", session->child.pid);
	run->beginning = loop_watch(session->loop, session->child.failure_fd, POLLIN, on_begun, run);
}

static int wait_for_end(struct run *run, struct refusal *refusal)
{
	struct session *session = &run->session;
	int err = 0;

	listen_to_signals(run);
	listen_to_changes(run);
	if (session->control.fd >= 0)
		run->control = loop_watch(session->loop, session->control.fd, POLLIN, on_control, run);
	watch_outputs(run);
	share_time(run);
	begin_progress(run);
	begin_service(run);
	begin_contexts(run);
	await_command(run);
	for (size_t i = 0; i < run->nr; i++)
		if (run->members[i]->going)
			activity_wait(&run->members[i]->activity);
	on_command_ended(run); /* it may have ended before the loop could tell */
	if (!session->reason)
		err = loop_run(session->loop);
	for (size_t i = 0; i < run->nr; i++) {
		activity_wait_no_more(&run->members[i]->activity);
		loop_remove(session->loop, &run->members[i]->again);
	}
	end_progress(run);
	end_contexts(run);
	end_service(run);
	unwatch_outputs(run);
	loop_remove(session->loop, &run->control);
	loop_remove(session->loop, &run->watched);
	loop_remove(session->loop, &run->beginning);
	/* Its end may be noticed before the reason. */
	if (!run->unexecuted.asked[0] && session->command)
		child_begin(&session->child, session->command, &run->unexecuted);
	loop_remove(session->loop, &run->grace);
	loop_remove(session->loop, &run->leaving);
	loop_remove(session->loop, &session->late);
	loop_remove(session->loop, &session->retry);
	listen_no_more(run);
	if (run->unexecuted.asked[0]) {
		*refusal = run->unexecuted;
		return -1;
	}
	return err ? refuse_to_wait(refusal, -err, "no descriptor can be waited for") : 0;
}

/* Writes the last reports. All activities are disabled before the first one is reported. */
static void report_last(struct run *run)
{
	note("ending: %s", run->session.reason ? run->session.reason : "no output is left");
	if (run->session.repeat >= run->members[0]->asked->options.repeats || run->session.ended_by) {
		session_tell_last(&run->session); /* what was refused before is none of the last records */
		session_take_all(&run->session);
	}
	for (size_t i = 0; i < run->nr; i++)
		if (run->members[i]->going)
			counters_disable(run->members[i]->activity.counters);
	names_wait_at_most(run->session.names, 0); /* no interval can be late any more */
	for (size_t i = 0; i < run->nr; i++)
		if (run->members[i]->going)
			activity_report(&run->members[i]->activity, true);
	for (size_t i = 0; i < run->nr; i++)
		if (run->members[i]->going && !run->session.alone)
			write_activity_end(run->members[i]);
}

static int execute_run(struct run *run, struct refusal *refusal)
{
	struct session *session = &run->session;
	int err;

	if (session->command && child_start(&session->child, session->command, &session->inherited, refusal))
		return -1;
	if (open_members(run, refusal) || begin_members(run, refusal))
		return -1;
	if (session->command && child_go(&session->child, session->command, refusal))
		return -1;
	if (session->command)
		note("process %d runs %s", session->child.pid, session->command[0]);
	if (session->repeat == 1)
		write_starts(run);
	err = wait_for_end(run, refusal);
	report_last(run);
	return err;
}

static void execute_repeatedly(struct run *run, __u64 repeats, struct refusal *refusal)
{
	struct session *session = &run->session;

	for (session->repeat = 1;; session->repeat++) {
		int err = execute_run(run, refusal);

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

static bool any_remote(const struct session *session)
{
	for (size_t i = 0; i < session->nr_streams; i++)
		if (sink_is_remote(&session->streams[i].sink))
			return true;
	return false;
}

/* Waits until everything is written; if a signal has ended the session, or ends the wait, only for a short
 * time. */
static void drain(struct run *run)
{
	struct session *session = &run->session;

	if (!timespec_is_set(&session->began))
		keep_old_files(run);
	for (size_t i = 0; i < session->nr_streams; i++)
		sink_end(&session->streams[i].sink);
	session_flush(session);
	if (!session->loop || !session_waits(session))
		return;
	run->draining = true;
	if (!session->ended_by && (any_remote(session) || !timespec_is_set(&session->began)))
		run->ended_ns = clock_ns(CLOCK_MONOTONIC);
	if (run->ended_ns)
		limit_drain(run);
	listen_to_signals(run);
	watch_outputs(run);
	loop_run(session->loop);
	unwatch_outputs(run);
	listen_no_more(run);
	loop_remove(session->loop, &run->over);
	loop_remove(session->loop, &session->retry);
	loop_remove(session->loop, &session->late);
}

static int stream_error(const struct session *session)
{
	if (session->stream_error)
		return session->stream_error;
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
	/* The command outlived the session, so it has no status to return. */
	if (session->child.pid && !session->child.exited && session->ended_by)
		return STATUS_SIGNAL + session->ended_by;
	return run->refused ? STATUS_REFUSED : session->verdict;
}

/* Ends --check with the mistakes that were found: writes all but the last, which is the refusal. */
static int last_found(struct run *run, struct refusal *refusal)
{
	struct request *request = run->request;

	*refusal = request->found[--request->nr_found];
	for (size_t i = 0; i < request->nr_found; i++)
		write_own(run, record_error(&request->found[i]));
	return -1;
}

/* A wrong request ends the session before it begins. If this machine lacks something that an activity needs,
 * only that activity ends. */
static int plan_each(struct run *run, int (*plan)(struct running *, struct refusal *),
		     struct refusal *refusal)
{
	for (size_t i = 0; i < run->nr; i++) {
		struct running *member = run->members[i];

		if (member->over || member->again || !plan(member, refusal))
			continue;
		if (run->session.alone || refusal->status == STATUS_USAGE) {
			refused_at(run, refusal, "/activities/%zu", member->asked->place);
			if (request_pass(run->request, refusal))
				return -1;
			continue;
		}
		give_up(member, refusal);
		if (any_left(run))
			*refusal = (struct refusal){0};
	}
	return 0;
}

static int plan_members(struct run *run, struct refusal *refusal)
{
	if (plan_each(run, plan_member, refusal))
		return -1;
	if (run->request->nr_found)
		return last_found(run, refusal);
	if (!refusal->asked[0] && plan_each(run, plan_beside, refusal))
		return -1;
	return refusal->asked[0] ? -1 : share_memory(run, refusal);
}

static void note_machine(const struct host *host)
{
	char cpus[256];

	note("nhmtap " NHMTAP_VERSION ", libbpf %s, Linux %s", libbpf_version_string(), host->release);
	note("%s family %u model %u stepping %u, events of %s, CPUs %s online%s", host->cpu.vendor,
	     host->cpu.family, host->cpu.model, host->cpu.stepping,
	     host->events ? host->events->name : "no table", cpus_print(&host->online, cpus, sizeof(cpus)),
	     host->virtual ? ", virtual" : "");
	note("perf_event_paranoid %d, capabilities 0x%llx, seccomp %d, lockdown %s, %llu descriptors",
	     host->perf_event_paranoid, (unsigned long long)host->capabilities, host->seccomp,
	     host->lockdown[0] ? host->lockdown : "none", (unsigned long long)host->descriptor_limit);
}

/* Raises privileges, except with --host-root: it may be any folder, so it is read with the caller's own
 * rights. */
static void raise_here(const struct run *run)
{
	if (!run->request->host_root || !run->request->host_root[0])
		privileges_raise();
}

static bool writes_registers(const struct run *run)
{
	for (size_t i = 0; i < run->nr; i++)
		if (run->members[i]->asked->options.msr)
			return true;
	return false;
}

/* Measuring goes on with more capabilities than it needs where they can't be given up. */
static void give_up_capabilities(struct run *run)
{
	const struct privileges_for purpose = {has_paths(run), run->session.command != NULL,
					       writes_registers(run), run->request->config != NULL};
	int err = privileges_keep(&run->session.host, &purpose);

	if (err)
		say("nhmtap: capabilities that are not needed can't be given up: capset(2): %s. Next: allow "
		    "it in the seccomp profile.",
		    strerror(-err));
}

/* Prepares everything that precedes opening the activities. */
static int prepare(struct run *run, struct refusal *refusal)
{
	const struct request *request = run->request;
	struct session *session = &run->session;
	int err = host_gather(&session->host, request->host_root);

	if (err) {
		refuse(refusal, STATUS_REFUSED, "reading what this machine has");
		refusal->error = -err;
		return because(refusal, "/sys or /proc can't be read: %s", guarded_why(-err));
	}
	note_machine(&session->host);
	session->loop = loop_open();
	if (!session->loop)
		return refuse_to_wait(refusal, errno, "the kernel gives no epoll descriptor");
	if (request->cpu_share > 0)
		session->cpu_share = cpu_share_new(session->loop, request->cpu_share);
	raise_here(run);
	session->names = names_new(&session->host, session->loop, &session->notices);
	names_limit(session->names, &(struct names_limits){.memory = request->names_bytes,
							   .unwinding = request->names_bytes});
	if (host_core_pmu(&session->host) && !request->check) {
		session->self = kernel_miscounts(&session->host) ? NULL : self_begin();
		session->host.cycles_precise = trial_cycles(&session->host);
		session->host.cycles_tried = !request->host_root[0];
	}
	privileges_lower();
	if (host_add_tables(&session->host, request->events_dir, refusal))
		return refused_at(run, refusal, "/events_dir");
	if (host_add_pmu_events(&session->host, request->pmu_events, refusal))
		return refused_at(run, refusal, "/pmu_events");
	if (!request->check && control_open(&session->control, request->control, refusal))
		return -1;
	if (!request->check && listen_open(&session->listen, request->listen, session, refusal))
		return refused_at(run, refusal, "/listen");
	raise_here(run);
	if (!request->check) {
		read_streams_first(run);
		give_up_capabilities(run);
	}
	if (!session->alone)
		write_session_start(run);
	return plan_members(run, refusal);
}

/* Implements --check: writes start records that show what would be opened, and warns of patterns that would
 * find nothing now. */
static void check_only(struct run *run)
{
	for (size_t i = 0; i < run->nr; i++) {
		struct running *member = run->members[i];

		if (member->over || member->again)
			continue;
		write_start(member);
		member->activity.interval_began_at = now_of(CLOCK_REALTIME);
		warn_of_unfit_patterns(&member->activity);
	}
	run->session.reason = "checked";
}

static void release_run(struct run *run)
{
	struct session *session = &run->session;

	for (size_t i = 0; i < run->nr; i++) {
		activity_release(&run->members[i]->activity);
		asked_release(run->members[i]->asked);
		free(run->members[i]);
	}
	free(run->members);
	json_decref(run->resource);
	names_release(session->names);
	listen_close(session->listen);
	cpu_share_release(session->cpu_share);
	loop_close(session->loop);
	child_release(&session->child);
	control_close(&session->control);
	self_end(session->self);
	host_release(&session->host);
}

int run_session(struct request *request, read_fn again, struct refusal *refusal)
{
	struct run run = {.request = request, .again = again, .signal_fd = -1};
	struct session *session = &run.session;
	int status, err;

	session->alone = !request->config;
	session->limits.memory = request->memory;
	session->command = request->command;
	session->enough = on_enough;
	session->unwritable = unwritable;
	session->child.go_fd = session->child.failure_fd = -1;
	session->control.fd = session->control.ack_fd = -1;
	session->notices = (struct notices)NOTICES_CLOSED;
	*refusal = (struct refusal){0};
	catch_signals(&run);
	speak_without_waiting();
	run.resource = resource_attributes(request->resource);
	for (size_t i = 0; i < request->nr_entries; i++) {
		add_member(&run, request->entries[i]);
		run.members[i]->activity.name = request->entries[i]->name;
		run.members[i]->activity.command = request->entries[i]->options.command->name;
	}
	request->nr_entries = 0;
	err = open_streams(&run, refusal);
	if (err) {
		forget_foreseen(&run);
		keep_old_files(&run);
		close_streams(&run, refusal);
		release_run(&run);
		return refusal->status;
	}
	memory_last_words(write_last_words, &run);
	err = signals_block(&run, refusal) || prepare(&run, refusal);
	forget_foreseen(&run);
	if (!err && request->check)
		check_only(&run);
	else if (!err)
		execute_repeatedly(&run, run.members[0]->asked->options.repeats, refusal);
	if (refusal->asked[0])
		write_own(&run, record_error(refusal));
	write_session_end(&run, session->reason, exit_status(&run, refusal));
	memory_last_words(NULL, NULL);
	drain(&run);
	close_streams(&run, refusal);
	status = exit_status(&run, refusal);
	release_run(&run);
	if (run.signal_fd >= 0)
		close(run.signal_fd);
	return status;
}

static int check_limits(const struct options *options, const struct request *request, struct refusal *refusal)
{
	if (options->memory && !request->memory) {
		refuse(refusal, STATUS_USAGE, "option --memory '%s'", options->memory);
		because(refusal, "it is no size from 1M on");
		return instead(refusal, "give bytes, or a number with K, M or G");
	}
	if (options->cpu_share && !request->cpu_share) {
		refuse(refusal, STATUS_USAGE, "option --cpu-share '%s'", options->cpu_share);
		because(refusal, "it is no share of one CPU from 0.01%% to 1000%%");
		return instead(refusal, "give a number with %%, as in 1%%");
	}
	return 0;
}

static int take_places(struct place_of_output *places, struct request *request, const struct options *options,
		       struct refusal *refusal)
{
	for (; request->nr_outputs < options->outputs.nr; request->nr_outputs++)
		if (request_place(&places[request->nr_outputs], options,
				  options->outputs.list[request->nr_outputs], refusal))
			return -1;
	return request->nr_outputs ? 0 : request_place(&places[request->nr_outputs++], options, "-", refusal);
}

int run_one(struct options *options, struct refusal *refusal)
{
	struct place_of_output outputs[TEXTS_MOST];
	struct asked *asked = xcalloc(1, sizeof(*asked));
	struct request request = {
		.entries = &asked,
		.nr_entries = 1,
		.outputs = outputs,
		.command = options->nr_rest ? options->rest : NULL,
		.control = options->control,
		.listen = options->listen,
		.memory = options->memory ? limits_size(options->memory) : 0,
		.cpu_share = options->cpu_share ? share_of_text(options->cpu_share) : 0,
		.events_dir = options->events_dir,
		.pmu_events = options->pmu_events,
		.host_root = options->host_root,
		.verbose = options->verbose,
		.quiet = options->quiet,
		.live = options->live,
	};

	note_begin(options->verbose);
	if (check_limits(options, &request, refusal) || take_places(outputs, &request, options, refusal) ||
	    uses_check_options(options, outputs, request.nr_outputs, refusal)) {
		asked_release(asked);
		return refusal->status;
	}
	/* Takes ownership of what the options own. */
	*asked = (struct asked){.name = xstrdup(options->command->name), .options = *options};
	*options = (struct options){0};
	return run_session(&request, NULL, refusal);
}
