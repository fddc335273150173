// SPDX-License-Identifier: GPL-2.0-only
#include "run/context_reader.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

/* The mappings of a process are read after a pause that doubles each time: it is short because programs
 * publish soon after they have begun, and long in the end because each reading costs the process. */
#define FIRST_PAUSE_NS 50000000ULL
#define LAST_PAUSE_NS  64000000000ULL

/* A context that is known is looked at once a second; all processes are listed as often. */
#define LOOK_MS 1000

/* How long to wait for the memory of one process. */
#define PATIENCE_NS 200000000ULL

/* A deadline that has passed. */
#define AT_ONCE 1

/* What is known of the context of a process. */
struct known_context {
	pid_t pid;
	__u64 address;		 /* 0: none was found yet */
	__u64 published_ns;	 /* 0: nothing was told, or that it is gone */
	__u64 next_ns, pause_ns; /* when its mappings are read next */
};

enum looker_state { IDLE, ASKED, ANSWERED };

/*
 * A thread that looks at one context at a time. The memory of a process may wait for what never comes (a file
 * system that does not answer, a page that a userfaultfd was to fill), and so does who reads it. A looker
 * that has not answered in time is left alone with its process, and another one looks at the others.
 */
struct looker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum looker_state state; /* under the lock. What follows is its thread's while it is ASKED */
	struct known_context context;
	json_t *attributes; /* what has been published since; NULL: nothing */
	struct looker *next;
};

struct followed {
	struct known_context context;
	struct looker *stuck; /* which has not answered yet; NULL: none */
	bool there, named;
};

struct context_reader {
	int socket;
	struct followed *list; /* in the order of pids */
	size_t nr;
	bool all;
	struct looker *free; /* the lookers that nobody asks now */
};

static int by_pid(const void *a, const void *b)
{
	const struct followed *one = a, *other = b;

	return (one->context.pid > other->context.pid) - (one->context.pid < other->context.pid);
}

static void follow_process(struct context_reader *reader, pid_t pid, size_t known)
{
	const struct followed key = {.context.pid = pid};
	struct followed *found = known ? bsearch(&key, reader->list, known, sizeof(key), by_pid) : NULL;

	if (found)
		found->there = true;
	else
		*xappend(reader->list, reader->nr) =
			(struct followed){.context = {.pid = pid, .pause_ns = FIRST_PAUSE_NS}, .there = true};
}

/* --- one process ---------------------------------------------------------------------------------- */

static void find_context(struct known_context *context, __u64 now)
{
	context->address = process_context_find(context->pid);
	context->next_ns = now + context->pause_ns;
	context->pause_ns = context->pause_ns * 2 < LAST_PAUSE_NS ? context->pause_ns * 2 : LAST_PAUSE_NS;
}

/* Looks at a context, and returns its attributes unless they are what was published before (NULL). */
static json_t *read_news(struct known_context *context, __u64 now)
{
	__u64 published = 0;
	json_t *attributes;

	if (!context->address && now >= context->next_ns)
		find_context(context, now);
	if (context->address && !process_context_published(context->pid, context->address, &published)) {
		context->address = 0;
		context->pause_ns = FIRST_PAUSE_NS;
		context->published_ns = 0;
	}
	if (!published || published == context->published_ns)
		return NULL;
	attributes = process_context_read(context->pid, context->address, &published);
	if (attributes)
		context->published_ns = published;
	return attributes;
}

static void set_state(struct looker *looker, enum looker_state state)
{
	pthread_mutex_lock(&looker->lock);
	looker->state = state;
	pthread_cond_signal(&looker->changed);
	pthread_mutex_unlock(&looker->lock);
}

/* Waits for a state until the deadline (CLOCK_MONOTONIC, ns; 0: no deadline). Returns whether it came. */
static bool await_state(struct looker *looker, enum looker_state state, __u64 deadline)
{
	bool there;

	pthread_mutex_lock(&looker->lock);
	while (looker->state != state && condition_wait(&looker->changed, &looker->lock, deadline))
		;
	there = looker->state == state;
	pthread_mutex_unlock(&looker->lock);
	return there;
}

static void *look(void *argument)
{
	struct looker *looker = argument;

	while (await_state(looker, ASKED, 0)) {
		looker->attributes = read_news(&looker->context, clock_ns(CLOCK_MONOTONIC));
		set_state(looker, ANSWERED);
	}
	return NULL;
}

static void add_free(struct context_reader *reader, struct looker *looker)
{
	looker->next = reader->free;
	reader->free = looker;
}

/* Returns a looker that nobody asks; NULL: there can be no thread more. */
static struct looker *take_free(struct context_reader *reader)
{
	struct looker *looker = reader->free;

	if (looker) {
		reader->free = looker->next;
		return looker;
	}
	looker = xcalloc(1, sizeof(*looker));
	pthread_mutex_init(&looker->lock, NULL);
	condition_init(&looker->changed);
	if (thread_start(&looker->thread, look, looker))
		return looker;
	free(looker);
	return NULL;
}

/* Sends what is published, or that nothing is any more (attributes NULL). */
static void tell_context(struct context_reader *reader, const struct known_context *context,
			 const json_t *attributes)
{
	struct told_context told = {.pid = context->pid, .published_ns = context->published_ns};

	if (attributes)
		json_dumpb(attributes, told.attributes, sizeof(told.attributes) - 1, JSON_COMPACT);
	if (send(reader->socket, &told, sizeof(told), MSG_NOSIGNAL) < 0)
		_exit(0);
}

static void tell_gone(struct context_reader *reader, struct followed *one)
{
	if (!one->context.published_ns)
		return;
	one->context.published_ns = 0;
	tell_context(reader, &one->context, NULL);
}

static void take_answer(struct context_reader *reader, struct followed *one, struct looker *looker)
{
	if (!looker->context.published_ns)
		tell_gone(reader, one);
	one->context = looker->context;
	if (looker->attributes)
		tell_context(reader, &one->context, looker->attributes);
	json_decref(looker->attributes);
	looker->attributes = NULL;
}

/* Takes the answer of a looker that was left alone with this process. Returns whether none is left. */
static bool is_free(struct context_reader *reader, struct followed *one)
{
	if (one->stuck && !await_state(one->stuck, ANSWERED, AT_ONCE))
		return false;
	if (one->stuck) {
		take_answer(reader, one, one->stuck);
		add_free(reader, one->stuck);
		one->stuck = NULL;
	}
	return true;
}

static void look_at_context(struct context_reader *reader, struct followed *one)
{
	struct looker *looker;

	if (!is_free(reader, one))
		return;
	looker = take_free(reader);
	if (!looker)
		return;
	looker->context = one->context;
	set_state(looker, ASKED);
	if (!await_state(looker, ANSWERED, clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS)) {
		one->stuck = looker;
		return;
	}
	take_answer(reader, one, looker);
	add_free(reader, looker);
}

/* --- all processes -------------------------------------------------------------------------------- */

/* Tells of those that are gone, and puts the others in order. One that a looker is stuck with stays. */
static void drop_gone(struct context_reader *reader)
{
	size_t kept = 0;

	for (size_t i = 0; i < reader->nr; i++) {
		struct followed *one = &reader->list[i];

		if (one->there || !is_free(reader, one))
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
			reader->list[i].named || !kill(reader->list[i].context.pid, 0) || errno == EPERM;
	for (size_t i = 0; i < reader->nr; i++) /* the list grows */
		follow_children_of(reader, reader->list[i].context.pid, known);
	drop_gone(reader);
}

/* How long to wait: until the next mappings are to be read, for processes that were named. */
static int wait_ms(const struct context_reader *reader, __u64 now)
{
	int ms = LOOK_MS;

	for (size_t i = 0; !reader->all && i < reader->nr; i++) {
		const struct known_context *one = &reader->list[i].context;

		if (!one->address && !reader->list[i].stuck && one->next_ns < now + ms * 1000000ULL)
			ms = one->next_ns > now ? (one->next_ns - now) / 1000000 + 1 : 1;
	}
	return ms;
}

void context_reader_serve(int socket, const void *context)
{
	struct context_reader reader = {.socket = socket};
	struct pollfd closed = {.fd = socket};

	for (const pid_t *pid = context; *pid; pid++) {
		follow_process(&reader, *pid, 0);
		reader.list[reader.nr - 1].named = true;
	}
	reader.all = !reader.nr;
	if (!reader.all)
		qsort(reader.list, reader.nr, sizeof(*reader.list), by_pid);
	do {
		if (reader.all)
			list_all(&reader);
		else
			list_children(&reader);
		for (size_t i = 0; i < reader.nr; i++)
			look_at_context(&reader, &reader.list[i]);
	} while (poll(&closed, 1, wait_ms(&reader, clock_ns(CLOCK_MONOTONIC))) <= 0);
}
