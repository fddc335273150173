// SPDX-License-Identifier: GPL-2.0-only
/*
 * Follows what measured processes publish about themselves (output/process_context.h), for the outputs that
 * name their resource. A process of its own looks, since the memory of others may be on a file system that
 * does not answer.
 */
#include "run/parts.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/note.h"
#include "output/member.h"
#include "output/process_context.h"
#include "record/record.h"
#include "record/type.h"

/* What is sent of a process. */
struct told_context {
	pid_t pid;
	__u64 published_ns;			   /* 0: it publishes nothing any more */
	char attributes[PROCESS_CONTEXT_MOST + 1]; /* an object */
};

/* --- in the process that looks -------------------------------------------------------------------- */

/* The mappings of a process are read after a pause that doubles each time: it is short because programs
 * publish soon after they have begun, and long in the end because each reading costs the process. */
#define FIRST_PAUSE_NS 50000000ULL
#define LAST_PAUSE_NS  64000000000ULL

/* A context that is known is looked at once a second; all processes are listed as often. */
#define LOOK_MS 1000

struct followed {
	pid_t pid;
	__u64 address; /* of its context; 0: none was found yet */
	__u64 published_ns;
	__u64 next_ns, pause_ns; /* when its mappings are read next */
	bool there, named;
};

struct context_reader {
	int socket;
	struct followed *list; /* in the order of pids */
	size_t nr;
	bool all;
};

static int by_pid(const void *a, const void *b)
{
	const struct followed *one = a, *other = b;

	return (one->pid > other->pid) - (one->pid < other->pid);
}

static void follow_process(struct context_reader *reader, pid_t pid, size_t known)
{
	const struct followed key = {.pid = pid};
	struct followed *found = known ? bsearch(&key, reader->list, known, sizeof(key), by_pid) : NULL;

	if (found)
		found->there = true;
	else
		*xappend(reader->list, reader->nr) =
			(struct followed){.pid = pid, .pause_ns = FIRST_PAUSE_NS, .there = true};
}

static void tell_context(struct context_reader *reader, const struct followed *one, const json_t *attributes)
{
	struct told_context told = {.pid = one->pid, .published_ns = one->published_ns};

	if (attributes)
		json_dumpb(attributes, told.attributes, sizeof(told.attributes) - 1, JSON_COMPACT);
	if (send(reader->socket, &told, sizeof(told), MSG_NOSIGNAL) < 0)
		exit(0);
}

static void tell_gone(struct context_reader *reader, struct followed *one)
{
	if (!one->published_ns)
		return;
	one->published_ns = 0;
	tell_context(reader, one, NULL);
}

static void find_context(struct followed *one, __u64 now)
{
	one->address = process_context_find(one->pid);
	one->next_ns = now + one->pause_ns;
	one->pause_ns = one->pause_ns * 2 < LAST_PAUSE_NS ? one->pause_ns * 2 : LAST_PAUSE_NS;
}

/* Reads a context unless it is the one that was told before. */
static void look_at_context(struct context_reader *reader, struct followed *one, __u64 now)
{
	__u64 published = 0;
	json_t *attributes;

	if (!one->address && now >= one->next_ns)
		find_context(one, now);
	if (one->address && !process_context_published(one->pid, one->address, &published)) {
		one->address = 0;
		one->pause_ns = FIRST_PAUSE_NS;
		tell_gone(reader, one);
	}
	if (!published || published == one->published_ns)
		return;
	attributes = process_context_read(one->pid, one->address, &published);
	if (attributes) {
		one->published_ns = published;
		tell_context(reader, one, attributes);
	}
	json_decref(attributes);
}

/* Tells of those that are gone, and puts the others in order. */
static void drop_gone(struct context_reader *reader)
{
	size_t kept = 0;

	for (size_t i = 0; i < reader->nr; i++) {
		struct followed *one = &reader->list[i];

		if (one->there)
			reader->list[kept++] = *one;
		else
			tell_gone(reader, one);
	}
	reader->nr = kept;
	qsort(reader->list, reader->nr, sizeof(*reader->list), by_pid);
}

/* Lists the processes that there are now. */
static void list_all(struct context_reader *reader)
{
	size_t known = reader->nr;
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	pid_t pid;

	for (size_t i = 0; i < known; i++)
		reader->list[i].there = false;
	while (folder && (entry = readdir(folder)))
		if ((pid = atoi(entry->d_name)) > 0)
			follow_process(reader, pid, known);
	if (folder)
		closedir(folder);
	drop_gone(reader);
}

/* Follows the children of a thread: `path` is its folder. */
static void follow_children(struct context_reader *reader, const char *path, size_t known)
{
	char name[80];
	FILE *file;
	int pid;

	snprintf(name, sizeof(name), "%s/children", path);
	file = fopen(name, "re");
	while (file && fscanf(file, "%d", &pid) == 1)
		follow_process(reader, pid, known);
	if (file)
		fclose(file);
}

static void follow_children_of(struct context_reader *reader, pid_t pid, size_t known)
{
	char path[64];
	struct dirent *entry;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		if (atoi(entry->d_name) <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, atoi(entry->d_name));
		follow_children(reader, path, known);
	}
	if (folder)
		closedir(folder);
}

/* Lists the children of the processes that were named, and theirs: events are inherited by them. One whose
 * parent has ended is followed as long as it is there. */
static void list_children(struct context_reader *reader)
{
	size_t known = reader->nr;

	for (size_t i = 0; i < known; i++)
		reader->list[i].there =
			reader->list[i].named || !kill(reader->list[i].pid, 0) || errno == EPERM;
	for (size_t i = 0; i < reader->nr; i++) /* the list grows */
		follow_children_of(reader, reader->list[i].pid, known);
	drop_gone(reader);
}

/* How long to wait: until the next mappings are to be read, for processes that were named. */
static int wait_ms(const struct context_reader *reader, __u64 now)
{
	int ms = LOOK_MS;

	for (size_t i = 0; !reader->all && i < reader->nr; i++) {
		const struct followed *one = &reader->list[i];

		if (!one->address && one->next_ns < now + ms * 1000000ULL)
			ms = one->next_ns > now ? (one->next_ns - now) / 1000000 + 1 : 1;
	}
	return ms;
}

/* Looks until the other end of the socket is closed. */
static void serve_contexts(int socket, const void *context)
{
	struct context_reader reader = {.socket = socket};
	struct pollfd closed = {.fd = socket};

	for (const pid_t *pid = context; *pid; pid++) {
		follow_process(&reader, *pid, 0);
		reader.list[reader.nr - 1].named = true;
	}
	qsort(reader.list, reader.nr, sizeof(*reader.list), by_pid);
	reader.all = !reader.nr;
	do {
		if (reader.all)
			list_all(&reader);
		else
			list_children(&reader);
		for (size_t i = 0; i < reader.nr; i++)
			look_at_context(&reader, &reader.list[i], clock_ns(CLOCK_MONOTONIC));
	} while (poll(&closed, 1, wait_ms(&reader, clock_ns(CLOCK_MONOTONIC))) <= 0);
}

/* --- in the session ------------------------------------------------------------------------------- */

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
	if (!apart_start(&run->contexts, "nhmtap-contexts", serve_contexts, run->followed, -1)) {
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
