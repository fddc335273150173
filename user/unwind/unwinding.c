// SPDX-License-Identifier: GPL-2.0-only
#include "unwind/unwinding.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregation/unwind_memory.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "naming/foreign.h"
#include "unwind/cache.h"
#include "unwind/needed.h"

/* A list of mappings in the memory that programs read. Processes share it after a fork. */
struct process_list {
	size_t users;
	__u32 position, serial;
	size_t words;
	__u32 *files; /* numbers of files, one per mapping; each is a reference */
	size_t nr;
};

struct follower {
	pid_t pid;
	struct process_list *list; /* NULL: programs have no list of this process */
	enum {
		ENTRY_NONE,
		ENTRY_COPIED, /* copied by the BPF program that follows forks, if the parent had an entry by
				 then */
		ENTRY_SET,
	} entry;      /* the entry that programs find by its pid */
	bool changed; /* the list must be made again */
	bool waiting; /* it is in the list `changed` of struct unwinding */
	bool seen;    /* it existed at an earlier publishing */
	__u64 since;  /* since when it waits for a note, CLOCK_MONOTONIC, ns; 0: it does not */
};

struct unwinding {
	struct unwind_memory *memory;
	struct unwind_tables *tables;
	struct mappings *mappings;
	struct map followers; /* struct follower by pid */
	pid_t *changed;	      /* processes to be handled at the next publishing */
	size_t nr_changed, room_changed;
	__u32 serial;
	__u32 executions[UNWIND_EXECUTIONS]; /* execs of processes with a list, as told by notes */
	__u32 *expected;		     /* files of the command; each is a reference */
	size_t nr_expected;
};

/* --- lists ------------------------------------------------------------------------------------ */

static void list_put(struct unwinding *unwinding, struct process_list *list)
{
	if (!list || --list->users)
		return;
	for (size_t i = 0; i < list->nr; i++)
		unwind_tables_put(unwinding->tables, list->files[i]);
	unwind_tables_retire(unwinding->tables, list->position, list->words);
	free(list->files);
	free(list);
}

struct row_gathering {
	struct unwinding *unwinding;
	struct unwind_mapping *mappings;
	size_t nr, room;
};

static __u32 number_of(struct unwinding *unwinding, const struct mapped_file *file)
{
	char path[PATH_MAX + 64];
	struct stat stat;
	__u32 number;
	int fd;

	if (file->kind == FILE_VDSO)
		return unwind_tables_get_vdso(unwinding->tables);
	if (file->kind != FILE_REGULAR || foreign_is_stuck(file->filesystem))
		return UNWIND_NO_FILE;
	if (file->fd >= 0 && file->readable)
		return foreign_known(file->fd, &stat) ? unwind_tables_get(unwinding->tables, &stat, file->fd)
						      : UNWIND_NO_FILE;
	if (file->fd >= 0)
		snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	else if (!mapped_file_path(file, path, sizeof(path)))
		return UNWIND_NO_FILE;
	/* A file that is known already need not be opened: it may have to be copied for that. */
	if (foreign_stat(path, file->filesystem, FOREIGN_SOON_MS, &stat)) {
		number = unwind_tables_known(unwinding->tables, &stat);
		if (number)
			return number;
	}
	fd = foreign_open(path, FOREIGN_SOON_MS, &stat);
	if (fd < 0)
		return UNWIND_NO_FILE;
	number = unwind_tables_get(unwinding->tables, &stat, fd);
	close(fd);
	return number;
}

static void gather_row(void *context, struct mapped_file *file, __u64 begin, __u64 end, __u64 offset)
{
	struct row_gathering *gathering = context;
	struct unwind_mapping mapping = {.begin = begin, .end = end};

	mapping.file = number_of(gathering->unwinding, file);
	if (mapping.file &&
	    !unwind_tables_bias(gathering->unwinding->tables, mapping.file, begin, offset, &mapping.bias)) {
		unwind_tables_put(gathering->unwinding->tables, mapping.file);
		mapping.file = UNWIND_NO_FILE;
	}
	gathering->mappings =
		xroom(gathering->mappings, gathering->nr, &gathering->room, sizeof(*gathering->mappings));
	gathering->mappings[gathering->nr++] = mapping;
}

/* Requests the tables of a process's files. Programs find the files of a process without a list by their
 * inodes, once they have a table. */
#define ASKED_AGAIN_NS 1000000000ULL

static void ask_for_unwinding(void *context, struct mapped_file *file, __u64 begin, __u64 end, __u64 offset)
{
	struct unwinding *unwinding = context;
	__u64 now = clock_ns(CLOCK_MONOTONIC);

	if (file->unwound && now - file->unwound < ASKED_AGAIN_NS)
		return;
	file->unwound = now;
	unwind_tables_put(unwinding->tables, number_of(unwinding, file));
}

static int by_begin(const void *a, const void *b)
{
	const struct unwind_mapping *one = a, *two = b;

	return one->begin < two->begin ? -1 : one->begin > two->begin;
}

/* Writes the current mappings of a process to the memory. Returns NULL if there are none, or no room. */
static struct process_list *list_new(struct unwinding *unwinding, pid_t pid)
{
	struct row_gathering gathering = {.unwinding = unwinding};
	struct unwind_list *head;
	struct process_list *list;
	size_t words;

	mappings_each(unwinding->mappings, pid, gather_row, &gathering);
	if (!gathering.nr)
		return NULL;
	qsort(gathering.mappings, gathering.nr, sizeof(*gathering.mappings), by_begin);
	for (; gathering.nr > UNWIND_MAPPINGS; gathering.nr--)
		unwind_tables_put(unwinding->tables, gathering.mappings[gathering.nr - 1].file);
	words = (sizeof(*head) + gathering.nr * sizeof(*gathering.mappings)) / sizeof(__u32);
	list = xcalloc(1, sizeof(*list));
	list->users = 1;
	list->nr = gathering.nr;
	list->words = words;
	list->files = xmalloc(list->nr * sizeof(*list->files));
	for (size_t i = 0; i < list->nr; i++)
		list->files[i] = gathering.mappings[i].file;
	list->position = unwind_memory_take(unwinding->memory, words);
	if (list->position) {
		head = unwind_memory_at(unwinding->memory, list->position);
		list->serial = ++unwinding->serial;
		head->nr = list->nr;
		memcpy(head + 1, gathering.mappings, list->nr * sizeof(*gathering.mappings));
		__atomic_store_n(&head->serial, list->serial, __ATOMIC_RELEASE);
	} else {
		for (size_t i = 0; i < list->nr; i++)
			unwind_tables_put(unwinding->tables, list->files[i]);
		free(list->files);
		free(list);
		list = NULL;
	}
	free(gathering.mappings);
	return list;
}

/* --- processes -------------------------------------------------------------------------------- */

static struct follower *find_follower(const struct unwinding *unwinding, pid_t pid)
{
	return map_find(&unwinding->followers, pid);
}

static struct follower *find_or_make(struct unwinding *unwinding, pid_t pid)
{
	struct follower *follower = find_follower(unwinding, pid);

	if (!follower) {
		follower = xcalloc(1, sizeof(*follower));
		follower->pid = pid;
		map_put(&unwinding->followers, pid, follower);
	}
	return follower;
}

static void hide_list(struct unwinding *unwinding, struct follower *follower)
{
	if (follower->entry != ENTRY_NONE)
		unwind_memory_forget(unwinding->memory, follower->pid);
	follower->entry = ENTRY_NONE;
}

static void show_list(struct unwinding *unwinding, struct follower *follower)
{
	const struct process_list *list = follower->list;

	if (!list || unwind_memory_set(unwinding->memory, follower->pid,
				       &(struct unwind_process){list->position, list->serial}))
		hide_list(unwinding, follower);
	else
		follower->entry = ENTRY_SET;
}

static void drop_list(struct unwinding *unwinding, struct follower *follower)
{
	struct process_list *list = follower->list;

	follower->list = NULL;
	hide_list(unwinding, follower);
	list_put(unwinding, list);
}

static void have_looked_at(struct unwinding *unwinding, struct follower *follower)
{
	if (follower->waiting)
		return;
	follower->waiting = true;
	unwinding->changed = xroom(unwinding->changed, unwinding->nr_changed, &unwinding->room_changed,
				   sizeof(*unwinding->changed));
	unwinding->changed[unwinding->nr_changed++] = follower->pid;
}

static void note_change(struct unwinding *unwinding, pid_t pid)
{
	struct follower *follower = find_or_make(unwinding, pid);

	follower->changed = true;
	have_looked_at(unwinding, follower);
}

static void on_fork(struct unwinding *unwinding, pid_t pid, pid_t parent)
{
	const struct follower *from = find_follower(unwinding, parent);
	struct follower *child;

	/* The parent's mappings are known now, but its list may not be made yet. */
	child = find_or_make(unwinding, pid);
	child->seen = false;
	if (!from || !from->list || from->changed) {
		if (from && from->list && child->entry == ENTRY_NONE)
			child->entry = ENTRY_COPIED;
		note_change(unwinding, pid);
		return;
	}
	if (child->list == from->list)
		return;
	drop_list(unwinding, child);
	child->list = from->list;
	child->list->users++;
	child->entry = ENTRY_COPIED;
	have_looked_at(unwinding, child);
}

static void on_exec(struct unwinding *unwinding, pid_t pid)
{
	struct follower *follower = find_follower(unwinding, pid);

	if (follower)
		follower->seen = false;
	if (!follower || !follower->list)
		return;
	unwinding->executions[pid & (UNWIND_EXECUTIONS - 1)]++;
	/* The BPF program that follows execs has removed the copy. */
	if (follower->entry == ENTRY_COPIED && unwind_memory_follows(unwinding->memory))
		follower->entry = ENTRY_NONE;
	drop_list(unwinding, follower);
}

static void on_gone(struct unwinding *unwinding, pid_t pid)
{
	struct follower *gone = find_follower(unwinding, pid);

	if (!gone)
		return;
	drop_list(unwinding, gone);
	map_remove(&unwinding->followers, pid, gone);
	free(gone);
}

static void on_change(void *context, enum mappings_change change, pid_t pid, pid_t parent)
{
	struct unwinding *unwinding = context;

	switch (change) {
	case MAPPINGS_ADDED:
		note_change(unwinding, pid);
		return;
	case MAPPINGS_FORKED:
		on_fork(unwinding, pid, parent);
		return;
	case MAPPINGS_EXECUTED:
		on_exec(unwinding, pid);
		return;
	case MAPPINGS_GONE:
		on_gone(unwinding, pid);
	}
}

/* Whether a BPF program has seen an exec whose note has not come yet, so that the known mappings are those of
 * the former program. A note that does not come in time was lost and is not waited for any longer. */
#define NOTE_LATE_NS 100000000ULL

static bool is_behind(struct unwinding *unwinding, struct follower *follower)
{
	__u32 *told = &unwinding->executions[follower->pid & (UNWIND_EXECUTIONS - 1)];
	__u32 seen = unwind_memory_executions(unwinding->memory, follower->pid);
	__u64 now = clock_ns(CLOCK_MONOTONIC);

	if (!unwind_memory_follows(unwinding->memory) || (__s32)(seen - *told) <= 0) {
		follower->since = 0;
		return false;
	}
	follower->since = follower->since ? follower->since : now;
	if (now - follower->since < NOTE_LATE_NS)
		return true;
	follower->since = 0;
	*told = seen;
	return false;
}

static void publish_list(struct unwinding *unwinding, struct follower *follower)
{
	struct process_list *before = follower->list;

	follower->list = list_new(unwinding, follower->pid);
	show_list(unwinding, follower);
	list_put(unwinding, before);
	/* It has just executed a program, whose note will come. */
	if (follower->list && is_behind(unwinding, follower))
		hide_list(unwinding, follower);
}

/* Whether a process can wait until the next publishing: it is new, and programs find their way without a
 * list. Most new processes end before. */
static bool can_wait(const struct unwinding *unwinding, struct follower *follower)
{
	bool seen = follower->seen;

	follower->seen = true;
	return !seen && unwind_memory_finds(unwinding->memory);
}

static bool has_wanted(const struct unwinding *unwinding, const struct process_list *list)
{
	for (size_t i = 0; list && i < list->nr; i++)
		if (list->files[i] && unwind_tables_wants(unwinding->tables, list->files[i]))
			return true;
	return false;
}

/* Asks again for files that had no room, since there may be some now even if no process maps them again. */
static void ask_for_wanted(struct unwinding *unwinding)
{
	const struct follower *one;
	size_t at = 0;

	while ((one = map_next(&unwinding->followers, &at)))
		if (has_wanted(unwinding, one->list))
			mappings_each(unwinding->mappings, one->pid, ask_for_unwinding, unwinding);
}

bool unwinding_publish(struct unwinding *unwinding, bool at_once)
{
	size_t kept = 0;

	if (unwinding->nr_changed && unwind_tables_note_uses(unwinding->tables))
		ask_for_wanted(unwinding);
	for (size_t i = 0; i < unwinding->nr_changed; i++) {
		struct follower *follower = find_follower(unwinding, unwinding->changed[i]);
		bool ended, later;

		if (!follower || !follower->waiting)
			continue;
		ended = mappings_has_ended(unwinding->mappings, follower->pid);
		later = !at_once && !ended && follower->entry != ENTRY_SET && can_wait(unwinding, follower);
		follower->waiting = later;
		if (later || (ended && follower->entry != ENTRY_SET)) {
			/* Request the tables of its files. By them, stacks of later processes of the same
			 * program can be walked, and its own while it exists. */
			mappings_each(unwinding->mappings, follower->pid, ask_for_unwinding, unwinding);
			if (later)
				unwinding->changed[kept++] = follower->pid;
		} else if (!follower->changed) {
			show_list(unwinding, follower);
		} else if (is_behind(unwinding, follower)) {
			follower->waiting = true;
			unwinding->changed[kept++] = follower->pid;
		} else {
			follower->changed = false;
			publish_list(unwinding, follower);
		}
	}
	unwinding->nr_changed = kept;
	return kept;
}

/* --- the whole -------------------------------------------------------------------------------- */

int unwinding_open(struct unwinding **result, struct mappings *mappings, size_t most, const struct host *host,
		   struct refusal *refusal)
{
	struct unwinding *unwinding = xcalloc(1, sizeof(*unwinding));

	if (!most || most > UNWIND_MEMORY)
		most = UNWIND_MEMORY;
	if (unwind_memory_open(&unwinding->memory, most, host, refusal)) {
		free(unwinding);
		return -1;
	}
	unwinding->tables = unwind_tables_open(unwinding->memory, most);
	unwinding->mappings = mappings;
	mappings_watch(mappings, on_change, unwinding);
	*result = unwinding;
	return 0;
}

void unwinding_close(struct unwinding *unwinding)
{
	struct follower *one;
	size_t at = 0;

	if (!unwinding)
		return;
	mappings_watch(unwinding->mappings, NULL, NULL);
	for (; (one = map_next(&unwinding->followers, &at)); at--)
		on_gone(unwinding, one->pid);
	map_release(&unwinding->followers);
	unwind_tables_close(unwinding->tables);
	unwind_memory_close(unwinding->memory);
	free(unwinding->changed);
	free(unwinding->expected);
	free(unwinding);
}

static void expect_file(void *context, const struct stat *stat, int fd)
{
	struct unwinding *unwinding = context;
	__u32 number = unwind_tables_get(unwinding->tables, stat, fd);

	if (!number)
		return;
	*xappend(unwinding->expected, unwinding->nr_expected) = number;
}

void unwinding_expect(struct unwinding *unwinding, char **command)
{
	needed_each(command, expect_file, unwinding);
	unwind_tables_get_vdso(unwinding->tables);
}

void unwinding_wait(struct unwinding *unwinding, __u64 ns)
{
	unwind_tables_wait(unwinding->tables, clock_ns(CLOCK_MONOTONIC) + ns);
}

struct unwind_memory *unwinding_memory(const struct unwinding *unwinding)
{
	return unwinding->memory;
}

struct unwinding_account unwinding_account(const struct unwinding *unwinding)
{
	struct unwind_tables_account tables = unwind_tables_account(unwinding->tables);

	return (struct unwinding_account){.tables = tables.tables,
					  .refused = tables.refused,
					  .bytes = unwind_memory_bytes(unwinding->memory),
					  .ns = tables.ns,
					  .follows = unwind_memory_follows(unwinding->memory)};
}
