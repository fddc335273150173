// SPDX-License-Identifier: GPL-2.0-only
/*
 * Follows what measured processes publish about themselves (output/process_context.h), for the outputs that
 * name their resource. A process of its own looks, since the memory of others may be on a file system that
 * does not answer.
 */
#include "run/parts.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/note.h"
#include "output/member.h"
#include "record/record.h"
#include "record/type.h"
#include "run/context_reader.h"

static const struct record_type context_record = {.name = "process_context"};
REGISTER_RECORD(context_record);

/* When a context was published. OTEP 4719 first had the time since 1970 there; publishers write
 * CLOCK_BOOTTIME by now. Nobody published contexts before 2020, and no machine has been up for fifty years.
 */
static struct timespec published_time(__u64 published_ns)
{
	const __u64 until_2020_ns = 1577836800ULL * 1000000000;

	return timespec_of(published_ns < until_2020_ns ? published_ns + clock_lead(CLOCK_BOOTTIME).ns
							: published_ns);
}

/* Whether a process and its children are all that is measured: then all that no other process has published
 * for itself has its resource. */
static bool is_whole_target(const struct run *run, pid_t pid)
{
	return run->followed[0] == pid && !run->followed[1];
}

static void write_context(struct run *run, const struct told_context *told)
{
	json_t *attributes = json_loads(told->attributes, 0, NULL);
	json_t *record = json_pack("{s:s, s:i}", "type", "process_context", "pid", (int)told->pid);
	struct timespec published = published_time(told->published_ns);

	if (told->published_ns)
		json_object_set_new(record, "published_time", value_time(&published));
	if (is_whole_target(run, told->pid))
		json_object_set_new(record, "target", json_true());
	json_object_set_new(record, "attributes", attributes ?: json_object());
	write_own(run, record);
}

static void on_context(void *context, short events)
{
	struct run *run = context;
	struct told_context told;
	ssize_t got;

	while ((got = recv(run->contexts.socket, &told, sizeof(told), MSG_DONTWAIT)) == sizeof(told))
		write_context(run, &told);
	if (!got)
		end_contexts(run);
}

static bool any_names_resources(const struct run *run)
{
	for (size_t i = 0; i < run->session.nr_streams; i++)
		if (run->session.streams[i].format->resources)
			return true;
	return false;
}

/* Adds a process once. */
static void add_followed(struct run *run, size_t *nr, pid_t pid)
{
	for (size_t i = 0; i < *nr; i++)
		if (run->followed[i] == pid)
			return;
	*xappend(run->followed, *nr) = pid;
}

/* Gathers the processes that are measured, ended by 0; none: all are. */
static void gather_followed(struct run *run)
{
	bool all = false;
	size_t nr = 0;

	free(run->followed);
	run->followed = NULL;
	for (size_t i = 0; i < run->nr; i++) {
		const struct target *target = &run->members[i]->activity.plan.target;

		if (!run->members[i]->going)
			continue;
		all = all || target->cpus_given || target_in_cgroups(target) || target->nr_tids;
		for (size_t p = 0; p < target->nr_pids; p++)
			add_followed(run, &nr, target->pids[p]);
		if (target_is_command(target))
			add_followed(run, &nr, run->session.child.pid);
	}
	if (all)
		nr = 0;
	*xappend(run->followed, nr) = 0;
}

void begin_contexts(struct run *run)
{
	if (!any_names_resources(run))
		return;
	gather_followed(run);
	if (!apart_start(&run->contexts, "nhmtap-contexts", context_reader_serve, run->followed, -1)) {
		note("there can be no process that reads the contexts of others");
		return;
	}
	run->context_source = loop_watch(run->session.loop, run->contexts.socket, POLLIN, on_context, run);
}

void end_contexts(struct run *run)
{
	loop_remove(run->session.loop, &run->context_source);
	apart_leave(&run->contexts);
	free(run->followed);
	run->followed = NULL;
}
