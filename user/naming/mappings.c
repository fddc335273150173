// SPDX-License-Identifier: GPL-2.0-only
#include "naming/mappings.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "host/processes.h"
#include "naming/foreign.h"
#include "naming/jitdump.h"

/* A mapping with code, and the time for which a process has it. */
struct mapping {
	__u64 begin, end; /* the first address, and the one after the last */
	__u64 offset;	  /* of `begin` in the file */
	__u64 since, until;
	struct mapped_file *file;
};

/*
 * The mappings of a process in one life. A forked process shares them with its parent until one of the two
 * changes its mappings. The current ones are sorted by their addresses, and no two overlap. New ones are
 * mostly next to the one before: /proc/PID/maps is sorted, and mmap(2) goes down through free addresses. So
 * the list has its unused room where the last one was put in.
 */
struct space {
	size_t users;
	bool anonymous; /* it has, or had, code that was made at run time */
	struct mapping *list;
	size_t nr, room;
	size_t gap; /* number of mappings before the unused room */
	struct mapping *ended;
	size_t nr_ended, room_ended;
};

#define COMM_SIZE  16 /* TASK_COMM_LEN */
#define COMMS_MOST 16

/* The names (comm) that the threads of a process had in one life. Threads of a pool often have one each, but
 * most processes have one name, so the others have memory of their own. */
struct comms {
	char first[COMM_SIZE];
	char (*others)[COMM_SIZE];
	unsigned char nr;
	bool incomplete; /* the process existed before notes were read, or has more than COMMS_MOST */
};

/* Where the names of code are that a process has made at run time, if it has children that inherited the
 * code. perf, too, names such code by the map of the process that has mapped it. */
struct ancestor {
	size_t users;
	unsigned int generation; /* number of ancestors before it */
	pid_t own_pid;
	struct map_writer writer;
	struct root *root;
	struct ancestor *before;
};

/* A life of a process: from a fork or an exec to the next exec or the exit. */
struct life {
	struct comms comms;
	struct space *space;
	__u64 since, until;
	struct root *root; /* if not `looked`: the root of the life before */
	bool looked;	   /* root and owner were looked up */
	struct mapped_file *program;
	pid_t own_pid;		   /* its pid in its own namespace; 0: not looked up */
	time_t began_at;	   /* then: when the process began, by CLOCK_REALTIME; 0: not known */
	uid_t owner;		   /* the user of the process, as last seen */
	struct ancestor *ancestor; /* NULL: it has inherited no code that was made at run time */
	struct life *before;
};

struct process {
	pid_t pid;
	__u64 exited;	   /* time of the exit of its first thread; MAPPINGS_FOREVER: still running */
	__u64 looked;	   /* when its maps were last read because an address was not found */
	bool threaded;	   /* it may have more than one thread */
	struct life *life; /* the current one; list of lives, newest first */
};

/* Memory for a life, with its process and its space. */
#define LIFE_BYTES                                                                                           \
	(sizeof(struct life) + sizeof(struct process) + sizeof(struct space) + (COMMS_MOST - 1) * COMM_SIZE)

/* What has ended is kept in so much memory, in addition to what has not. */
#define ENDED_BYTES (16UL << 20)

struct mappings {
	struct mapped_files *files;
	struct map processes; /* struct process by pid */
	size_t nr;	      /* mappings in all spaces */
	size_t nr_lives;      /* of all processes */
	size_t bytes_next;    /* bytes at which what has ended is forgotten */
	pid_t *executed;      /* processes that have executed a program since mappings_look_at_executed() */
	size_t nr_executed, room_executed;
	__u64 dropped;
	__u64 changes; /* see mappings_changes() */
	bool data;     /* see mappings_of_data() */
	bool replaced; /* see mappings_replaced() */
	void (*changed)(void *context, enum mappings_change change, pid_t pid, pid_t parent);
	void *context; /* of changed */
};

static void tell_change(const struct mappings *mappings, enum mappings_change change, pid_t pid, pid_t parent)
{
	if (mappings->changed)
		mappings->changed(mappings->context, change, pid, parent);
}

void mappings_watch(struct mappings *mappings,
		    void (*changed)(void *context, enum mappings_change change, pid_t pid, pid_t parent),
		    void *context)
{
	const struct process *process;

	mappings->changed = changed;
	mappings->context = context;
	for (size_t at = 0; (process = map_next(&mappings->processes, &at));)
		tell_change(mappings, MAPPINGS_ADDED, process->pid, 0);
}

/* --- spaces and lives ------------------------------------------------------------------------- */

static struct space *space_new(void)
{
	struct space *space = xcalloc(1, sizeof(*space));

	space->users = 1;
	return space;
}

/* The current mapping of this number, in the order of the addresses. */
static struct mapping *current_mapping(const struct space *space, size_t i)
{
	return &space->list[i < space->gap ? i : i + (space->room - space->nr)];
}

/* The number of the first current mapping that ends after this address. */
static size_t first_after(const struct space *space, __u64 address)
{
	size_t low = 0, high = space->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (current_mapping(space, middle)->end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void space_put(struct mappings *mappings, struct space *space)
{
	if (--space->users)
		return;
	for (size_t i = 0; i < space->nr; i++)
		mapped_file_put(current_mapping(space, i)->file);
	for (size_t i = 0; i < space->nr_ended; i++)
		mapped_file_put(space->ended[i].file);
	mappings->nr -= space->nr + space->nr_ended;
	free(space->list);
	free(space->ended);
	free(space);
}

/* Moves the unused room to this place among the current mappings. */
static void move_gap(struct space *space, size_t at)
{
	size_t unused = space->room - space->nr;

	if (at < space->gap)
		memmove(space->list + at + unused, space->list + at,
			(space->gap - at) * sizeof(*space->list));
	else if (at > space->gap)
		memmove(space->list + space->gap, space->list + space->gap + unused,
			(at - space->gap) * sizeof(*space->list));
	space->gap = at;
}

/* Adds a current mapping, which overlaps no other. Takes over the caller's reference to the file. */
static void space_add(struct mappings *mappings, struct space *space, const struct mapping *mapping)
{
	size_t at = first_after(space, mapping->begin);

	if (space->nr == space->room) {
		move_gap(space, space->nr);
		space->list = xroom(space->list, space->nr, &space->room, sizeof(*space->list));
	}
	move_gap(space, at);
	space->list[space->gap++] = *mapping;
	space->nr++;
	mappings->nr++;
}

static void add_ended(struct mappings *mappings, struct space *space, const struct mapping *mapping)
{
	space->ended = xroom(space->ended, space->nr_ended, &space->room_ended, sizeof(*space->ended));
	space->ended[space->nr_ended++] = *mapping;
	mappings->nr++;
}

/* Ends a current mapping. */
static void space_end(struct mappings *mappings, struct space *space, size_t i, __u64 until)
{
	struct mapping mapping = *current_mapping(space, i);

	move_gap(space, i + 1);
	space->gap--;
	space->nr--;
	mappings->nr--;
	mapping.until = until;
	add_ended(mappings, space, &mapping);
}

/* Returns a space that only this life uses, so that it can be changed; copies a shared one. */
static struct space *own_space(struct mappings *mappings, struct life *life)
{
	struct space *shared = life->space;

	if (shared->users == 1)
		return shared;
	life->space = space_new();
	life->space->anonymous = shared->anonymous;
	for (size_t i = 0; i < shared->nr; i++) {
		mapped_file_again(current_mapping(shared, i)->file);
		space_add(mappings, life->space, current_mapping(shared, i));
	}
	for (size_t i = 0; i < shared->nr_ended; i++) {
		if (shared->ended[i].until <= life->since)
			continue;
		mapped_file_again(shared->ended[i].file);
		add_ended(mappings, life->space, &shared->ended[i]);
	}
	shared->users--;
	return life->space;
}

static struct ancestor *ancestor_again(struct ancestor *ancestor)
{
	if (ancestor)
		ancestor->users++;
	return ancestor;
}

static void ancestor_put(struct ancestor *ancestor)
{
	while (ancestor && !--ancestor->users) {
		struct ancestor *before = ancestor->before;

		root_put(ancestor->root);
		free(ancestor);
		ancestor = before;
	}
}

static void life_release(struct mappings *mappings, struct life *life)
{
	space_put(mappings, life->space);
	ancestor_put(life->ancestor);
	root_put(life->root);
	mapped_file_put(life->program);
	free(life->comms.others);
	free(life);
	mappings->nr_lives--;
}

static const char *comms_at(const struct comms *comms, size_t i)
{
	return i ? comms->others[i - 1] : comms->first;
}

static bool comms_have(const struct comms *comms, const char *comm)
{
	for (size_t i = 0; i < comms->nr; i++)
		if (!strncmp(comms_at(comms, i), comm, COMM_SIZE))
			return true;
	return false;
}

static void comms_add(struct comms *comms, const char *comm)
{
	if (comms_have(comms, comm))
		return;
	if (comms->nr == COMMS_MOST) {
		comms->incomplete = true;
		return;
	}
	if (comms->nr && !comms->others)
		comms->others = xcalloc(COMMS_MOST - 1, sizeof(*comms->others));
	memcpy((char *)comms_at(comms, comms->nr++), comm, strnlen(comm, COMM_SIZE - 1));
}

static struct comms comms_copy(const struct comms *comms)
{
	struct comms copy = *comms;

	copy.others = NULL;
	if (comms->others) {
		copy.others = xcalloc(COMMS_MOST - 1, sizeof(*copy.others));
		memcpy(copy.others, comms->others, (COMMS_MOST - 1) * sizeof(*copy.others));
	}
	return copy;
}

/* The user of a process for file access: proc(5). Returns `known` if the process has ended. */
static uid_t owner_of(pid_t pid, uid_t known)
{
	char users[64]; /* real, effective, saved, and that of files */

	if (proc_status(pid, "Uid:", users, sizeof(users)))
		sscanf(users, "%*u %*u %*u %u", &known);
	return known;
}

/* Looks up the owner and the root of a process, once per life. If the process has already ended, both keep
 * their former values. */
static void look_at_owner(struct mappings *mappings, const struct process *process)
{
	struct life *life = process->life;
	struct root *root;
	struct stat stat_of;
	char path[32];

	if (life->looked)
		return;
	life->looked = true;
	root = root_of(mappings->files, process->pid);
	if (root) {
		root_put(life->root);
		life->root = root;
	}
	snprintf(path, sizeof(path), "/proc/%d", (int)proc_living(process->pid));
	if (!stat(path, &stat_of))
		life->owner = stat_of.st_uid;
}

/* Begins a life. Takes over the caller's reference to the space. Root and owner are those of `before` for
 * now; NULL: they are not known. */
static struct life *begin_life(struct mappings *mappings, struct process *process, __u64 since,
			       struct space *space, const struct life *before)
{
	struct life *life = xmalloc(sizeof(*life));

	mappings->nr_lives++;

	if (process->life)
		process->life->until = since;
	*life = (struct life){.space = space,
			      .since = since,
			      .until = MAPPINGS_FOREVER,
			      .root = before ? root_get(before->root) : NULL,
			      .owner = before ? before->owner : (uid_t)-1,
			      .before = process->life};
	process->life = life;
	process->exited = MAPPINGS_FOREVER;
	process->threaded = false; /* an exec ends all other threads */
	return life;
}

/* Begins a life whose fork or exec was not noted. */
static void begin_unheard(struct mappings *mappings, struct process *process)
{
	begin_life(mappings, process, 0, space_new(), process->life)->comms.incomplete = true;
	process->threaded = true;
	look_at_owner(mappings, process);
}

/* --- processes -------------------------------------------------------------------------------- */

static struct process *find_process(const struct mappings *mappings, pid_t pid)
{
	return map_find(&mappings->processes, pid);
}

static struct process *find_or_make(struct mappings *mappings, pid_t pid)
{
	struct process *process = find_process(mappings, pid);

	if (process)
		return process;
	process = xcalloc(1, sizeof(*process));
	*process = (struct process){.pid = pid, .exited = MAPPINGS_FOREVER};
	map_put(&mappings->processes, pid, process);
	return process;
}

/* Releases lives that ended before `since`, and in the others mappings that ended before. */
static void forget_lives(struct mappings *mappings, struct process *process, __u64 since)
{
	for (struct life **at = &process->life; *at;) {
		struct life *life = *at;

		if (life->until <= since) {
			*at = life->before;
			life_release(mappings, life);
			continue;
		}
		if (life->space->users == 1) {
			struct space *space = life->space;
			size_t kept = 0;

			for (size_t i = 0; i < space->nr_ended; i++)
				if (space->ended[i].until > since)
					space->ended[kept++] = space->ended[i];
				else
					mapped_file_put(space->ended[i].file);
			mappings->nr -= space->nr_ended - kept;
			space->nr_ended = kept;
		}
		at = &life->before;
	}
}

static bool is_there_no_more(const struct process *process)
{
	return kill(process->pid, 0) && errno == ESRCH;
}

/* Whether the whole process has ended, given that its first thread has: other threads may still run. */
static bool has_gone(const struct process *process)
{
	return !process->threaded || is_there_no_more(process);
}

void mappings_look_who_is_gone(struct mappings *mappings)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC);
	struct process *process;

	for (size_t at = 0; (process = map_next(&mappings->processes, &at));)
		if (process->exited == MAPPINGS_FOREVER && is_there_no_more(process))
			process->exited = now;
}

void mappings_forget(struct mappings *mappings, __u64 since)
{
	struct process *process;

	mappings->changes++;
	for (size_t at = 0; (process = map_next(&mappings->processes, &at));) {
		if (process->life && process->exited <= since && has_gone(process))
			process->life->until = process->exited;
		forget_lives(mappings, process, since);
		if (process->life)
			continue;
		tell_change(mappings, MAPPINGS_GONE, process->pid, 0);
		map_remove(&mappings->processes, process->pid, process);
		free(process);
		at--;
	}
}

struct mappings *mappings_new(void)
{
	struct mappings *mappings = xcalloc(1, sizeof(*mappings));

	mappings->files = mapped_files_new();
	mappings->bytes_next = ENDED_BYTES;
	return mappings;
}

struct mappings *mappings_of_data(void)
{
	struct mappings *mappings = xcalloc(1, sizeof(*mappings));

	mappings->files = mapped_files_by_name();
	mappings->bytes_next = ENDED_BYTES;
	mappings->data = true;
	return mappings;
}

void mappings_release(struct mappings *mappings)
{
	struct process *process;

	if (!mappings)
		return;
	for (size_t at = 0; (process = map_next(&mappings->processes, &at));) {
		forget_lives(mappings, process, MAPPINGS_FOREVER);
		free(process);
	}
	map_release(&mappings->processes);
	mapped_files_release(mappings->files);
	free(mappings->executed);
	free(mappings);
}

/* Whether there is room for another mapping. */
static bool has_room(struct mappings *mappings)
{
	if (mappings->nr >= MAPPINGS_MOST)
		mappings_forget(mappings, clock_ns(CLOCK_MONOTONIC));
	if (mappings->nr < MAPPINGS_MOST)
		return true;
	mappings->dropped++;
	return false;
}

__u64 mappings_changes(const struct mappings *mappings)
{
	return mappings->changes;
}

size_t mappings_bytes(const struct mappings *mappings)
{
	return mappings->nr * sizeof(struct mapping) + mappings->nr_lives * LIFE_BYTES +
	       mapped_files_bytes(mappings->files);
}

/* Forgets what has ended if it takes too much memory. What has not ended stays, however much it is. */
static void forget_ended(struct mappings *mappings)
{
	if (mappings_bytes(mappings) < mappings->bytes_next)
		return;
	mappings_forget(mappings, clock_ns(CLOCK_MONOTONIC));
	mappings->bytes_next = mappings_bytes(mappings) + ENDED_BYTES;
}

/* --- taking in -------------------------------------------------------------------------------- */

/* Whether the process has this mapping already. */
static bool is_there(const struct space *space, const struct mapping *new)
{
	size_t i = first_after(space, new->begin);
	const struct mapping *old = i < space->nr ? current_mapping(space, i) : NULL;

	return old && old->begin == new->begin && old->end == new->end && old->offset == new->offset &&
	       old->file == new->file;
}

static void add_part(struct mappings *mappings, struct space *space, const struct mapping *whole, __u64 begin,
		     __u64 end, __u64 since)
{
	struct mapping part = *whole;

	if (begin >= end)
		return;
	part.offset += begin - whole->begin;
	part.begin = begin;
	part.end = end;
	part.since = since;
	part.until = MAPPINGS_FOREVER;
	mapped_file_again(part.file);
	space_add(mappings, space, &part);
}

/* Ends the old mappings that a new one overlaps. Their remaining parts on either side become mappings of
 * their own. */
static void replace(struct mappings *mappings, struct space *space, const struct mapping *new)
{
	size_t i = first_after(space, new->begin);

	while (i < space->nr && current_mapping(space, i)->begin < new->end) {
		struct mapping old = *current_mapping(space, i);

		mappings->replaced |= old.file != new->file;
		space_end(mappings, space, i, new->since);
		add_part(mappings, space, &old, old.begin, new->begin, new->since);
		add_part(mappings, space, &old, new->end, old.end, new->since);
		i = first_after(space, new->begin);
	}
}

/* Whether it is code that is made at run time where the program that the process executed before had some. */
static bool is_made_anew(const struct life *life, const struct mapping *new)
{
	const struct life *before = life->before;
	size_t i;

	if (new->file->kind != FILE_ANONYMOUS || !before || !before->space->anonymous)
		return false;
	i = first_after(before->space, new->begin);
	while (i < before->space->nr && current_mapping(before->space, i)->file != new->file)
		i++;
	return i < before->space->nr && current_mapping(before->space, i)->begin < new->end;
}

static void add_mapping(struct mappings *mappings, struct process *process, struct sighting *sighting,
			__u64 offset, __u64 time)
{
	struct life *life = process->life;
	struct mapping mapping = {.begin = sighting->begin,
				  .end = sighting->end,
				  .offset = offset,
				  .since = time,
				  .until = MAPPINGS_FOREVER};
	struct space *space;

	if (sighting->begin >= sighting->end || !has_room(mappings))
		return;
	sighting->pid = process->pid;
	sighting->root = life->root;
	mapping.file = mapped_file_known(mappings->files, sighting);
	if (!mapping.file) {
		look_at_owner(mappings, process);
		sighting->root = life->root;
		mapping.file = mapped_file_get(mappings->files, sighting);
	}
	if (is_there(life->space, &mapping)) {
		mapped_file_put(mapping.file);
		return;
	}
	space = own_space(mappings, life);
	space->anonymous |= mapping.file->kind == FILE_ANONYMOUS;
	replace(mappings, space, &mapping);
	mappings->replaced |= is_made_anew(life, &mapping);
	space_add(mappings, space, &mapping);
	tell_change(mappings, MAPPINGS_ADDED, process->pid, 0);
	/* The kernel maps a program before its interpreter: load_elf_binary(), fs/binfmt_elf.c. */
	if (!life->program && mapping.file->kind == FILE_REGULAR)
		life->program = mapped_file_again(mapping.file);
}

static void take_mapped(struct mappings *mappings, const struct sideband_note *note)
{
	struct process *process = find_or_make(mappings, note->pid);
	char build_id[BUILD_ID_TEXT] = "";
	struct sighting sighting = {.path = note->path,
				    .begin = note->begin,
				    .end = note->begin + note->size,
				    .build_id = build_id,
				    .device = note->device,
				    .inode = note->inode};

	if (!process->life)
		begin_unheard(mappings, process);
	build_id_text(build_id, note->build_id, note->build_id_size);
	add_mapping(mappings, process, &sighting, note->offset, note->time);
}

static void take_executed(struct mappings *mappings, const struct sideband_note *note)
{
	struct process *process = find_or_make(mappings, note->pid);
	/* The process may have entered a container before, or changed its user. Most have not, and most map
	 * only known files, so this is looked up when an unknown file is mapped. */
	struct life *life = begin_life(mappings, process, note->time, space_new(), process->life);

	comms_add(&life->comms, note->comm);
	mappings->executed = xroom(mappings->executed, mappings->nr_executed, &mappings->room_executed,
				   sizeof(*mappings->executed));
	mappings->executed[mappings->nr_executed++] = note->pid;
	tell_change(mappings, MAPPINGS_EXECUTED, note->pid, 0);
}

static void take_named(struct mappings *mappings, const struct sideband_note *note)
{
	struct process *process = find_process(mappings, note->pid);

	if (process && process->life)
		comms_add(&process->life->comms, note->comm);
}

/* The pid in the process's own namespace, which is the last number of NSpid: proc(5). */
static pid_t own_pid(pid_t pid)
{
	char numbers[512], *last;

	if (proc_status(pid, "NSpid:", numbers, sizeof(numbers)) && (last = strrchr(numbers, '\t')))
		return atoi(last + 1);
	return pid;
}

/* When a process began; of one that has ended, the oldest that is known of it. */
static time_t began_at(const struct process *process)
{
	time_t began = proc_began(process->pid);
	const struct life *life = process->life;

	if (began)
		return began;
	while (life->before)
		life = life->before;
	return life->since ? clock_realtime_of(&(struct timespec){.tv_sec = life->since / 1000000000}).tv_sec
			   : 0;
}

/* Looks up by which number, as which user and below which root the process writes its perf-PID.map. */
static void look_for_jit(struct mappings *mappings, const struct process *process)
{
	struct life *life = process->life;

	look_at_owner(mappings, process);
	if (life->own_pid)
		return;
	life->own_pid = own_pid(process->pid);
	life->began_at = began_at(process);
	life->owner = owner_of(process->pid, life->owner);
}

#define GENERATIONS_MOST 8 /* each one costs a look for its file; more than two are rare */

/* What a process hands down to its children with the code that it has made or inherited. */
static struct ancestor *handed_down(struct mappings *mappings, const struct process *parent)
{
	struct life *life = parent->life;
	struct ancestor *ancestor = life->ancestor;

	if (!life->space->anonymous || (ancestor && ancestor->generation == GENERATIONS_MOST - 1))
		return ancestor_again(ancestor);
	look_for_jit(mappings, parent);
	ancestor = xmalloc(sizeof(*ancestor));
	*ancestor = (struct ancestor){.users = 1,
				      .generation = life->ancestor ? life->ancestor->generation + 1 : 0,
				      .own_pid = life->own_pid,
				      .writer = {.user = life->owner, .since = life->began_at},
				      .root = root_get(life->root),
				      .before = ancestor_again(life->ancestor)};
	return ancestor;
}

static void take_forked(struct mappings *mappings, const struct sideband_note *note)
{
	struct process *parent = find_process(mappings, note->parent);
	struct process *process = find_or_make(mappings, note->pid);
	struct life *life;

	if (!parent || !parent->life) {
		mappings_look(mappings, note->pid);
		return;
	}
	parent->life->space->users++;
	life = begin_life(mappings, process, note->time, parent->life->space, parent->life);
	life->looked = parent->life->looked;
	if (parent->life->program)
		life->program = mapped_file_again(parent->life->program);
	life->comms = comms_copy(&parent->life->comms);
	life->ancestor = handed_down(mappings, parent);
	tell_change(mappings, MAPPINGS_FORKED, note->pid, note->parent);
}

static void take_threaded(struct mappings *mappings, const struct sideband_note *note)
{
	struct process *process = find_process(mappings, note->pid);

	if (process)
		process->threaded = true;
}

static void take_exited(struct mappings *mappings, const struct sideband_note *note)
{
	struct process *process = find_process(mappings, note->pid);

	if (process)
		process->exited = note->time;
}

void mappings_take(struct mappings *mappings, const struct sideband_note *note)
{
	static void (*const take[])(struct mappings *, const struct sideband_note *) = {
		[SIDEBAND_MAPPED] = take_mapped, [SIDEBAND_EXECUTED] = take_executed,
		[SIDEBAND_NAMED] = take_named,	 [SIDEBAND_FORKED] = take_forked,
		[SIDEBAND_EXITED] = take_exited, [SIDEBAND_THREADED] = take_threaded,
	};

	mappings->changes++;
	forget_ended(mappings);
	take[note->kind](mappings, note);
}

void mappings_look_at_executed(struct mappings *mappings, bool look)
{
	for (size_t i = 0; i < mappings->nr_executed && look; i++) {
		const struct process *process = find_process(mappings, mappings->executed[i]);

		if (process && process->life && process->exited == MAPPINGS_FOREVER)
			look_at_owner(mappings, process);
	}
	mappings->nr_executed = 0;
}

void mappings_expect(struct mappings *mappings, pid_t pid)
{
	mappings->changes++;
	begin_unheard(mappings, find_or_make(mappings, pid));
}

/* --- looking ---------------------------------------------------------------------------------- */

#define NEWLINE "\\012"

static void put_newlines(char *path)
{
	char *at = path;

	while ((at = strstr(at, NEWLINE))) {
		*at++ = '\n';
		memmove(at, at + strlen(NEWLINE) - 1, strlen(at + strlen(NEWLINE) - 1) + 1);
	}
}

/* The kernel writes a newline in a path as "\\012", and leaves all else as it is: show_map_vma(),
 * fs/proc/task_mmu.c. A file may also be named like that, so the name itself is read from map_files, if it
 * may be. */
static void read_name(char *path, pid_t pid, const struct sighting *sighting)
{
	char link[96];
	struct foreign_answer *answer;

	if (!strstr(path, NEWLINE))
		return;
	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", (int)proc_living(pid), sighting->begin,
		 sighting->end);
	answer = xcalloc(1, sizeof(*answer));
	if (foreign_ask(&(struct foreign_question){.want = FOREIGN_HOLD,
						   .path = link,
						   .guard = {.most = GUARD_IMAGE_MOST},
						   .device = sighting->device,
						   .wait_ms = FOREIGN_SOON_MS},
			answer) ||
	    !answer->path[0] || strlen(answer->path) > strlen(path))
		put_newlines(path);
	else
		strcpy(path, answer->path);
	if (answer->fd >= 0)
		close(answer->fd);
	free(answer);
}

/* Parses a line like "55d0c8a01000-55d0c8a02000 r-xp 00001000 fe:00 1234 /usr/bin/true": proc(5). */
static void add_line(struct mappings *mappings, struct process *process, char *line, __u64 time)
{
	unsigned long long begin, end, offset, inode;
	unsigned int major, minor;
	struct sighting sighting = {.build_id = ""};
	int path = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line,
		   mappings->data ? "%llx-%llx %*4c %llx %x:%x %llu %n"
				  : "%llx-%llx %*2c%*1[x]%*c %llx %x:%x %llu %n",
		   &begin, &end, &offset, &major, &minor, &inode, &path) != 6 ||
	    !path)
		return;
	sighting.begin = begin;
	sighting.end = end;
	sighting.device = makedev(major, minor);
	sighting.inode = inode;
	sighting.path = line[path] ? line + path : "//anon";
	read_name(line + path, process->pid, &sighting);
	if (strcmp(sighting.path, "[vsyscall]"))
		add_mapping(mappings, process, &sighting, offset, time);
}

/* Finds the program of a process whose exec was not noted. */
static void find_program(struct life *life, pid_t pid)
{
	char name[64], path[PATH_MAX];
	ssize_t length;

	snprintf(name, sizeof(name), "/proc/%d/exe", (int)proc_living(pid));
	length = readlink(name, path, sizeof(path) - 1);
	if (length < 0)
		return;
	path[length] = '\0';
	for (size_t i = 0; i < life->space->nr; i++)
		if (!strcmp(current_mapping(life->space, i)->file->path, path)) {
			mapped_file_put(life->program);
			life->program = mapped_file_again(current_mapping(life->space, i)->file);
			return;
		}
}

/* How long to wait for what a process has mapped, which depends on that process: for the first that does not
 * answer, and for any other until that one does, because there may be many. */
#define PATIENT_MS 1000
#define SHORT_MS   50

/* Returns a copy of /proc/PID/maps, or NULL. */
static FILE *open_maps(pid_t pid)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)proc_living(pid));
	fd = foreign_open_as(&(struct foreign_question){.want = FOREIGN_COPY,
							.path = name,
							.wait_ms = foreign_is_stuck_in_proc("maps")
									   ? SHORT_MS
									   : PATIENT_MS},
			     NULL);
	return fd < 0 ? NULL : fdopen(fd, "r");
}

void mappings_look(struct mappings *mappings, pid_t pid)
{
	struct process *process;
	char *line = NULL;
	size_t size = 0;
	__u64 before = clock_ns(CLOCK_MONOTONIC), time; /* what changes while it is read has its own notes */
	FILE *file = open_maps(pid);

	if (!file)
		return;
	mappings->changes++;
	process = find_or_make(mappings, pid);
	time = process->life ? before : 0;
	if (!process->life)
		begin_unheard(mappings, process);
	while (getline(&line, &size, file) > 0)
		add_line(mappings, process, line, time);
	free(line);
	fclose(file);
	find_program(process->life, pid);
}

void mappings_look_at_all(struct mappings *mappings)
{
	/* If /proc belongs to another pid namespace, its numbers are useless. Then each process is read when
	 * an address of it is looked up. */
	DIR *dir = proc_is_ours() ? opendir("/proc") : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			mappings_look(mappings, atoi(entry->d_name));
	if (dir)
		closedir(dir);
}

/* --- finding ---------------------------------------------------------------------------------- */

/* How long the mapping existed within both the interval and the life. */
static __u64 lived(__u64 interval, const struct life *life, const struct mapping *mapping, __u64 now)
{
	__u64 since = interval > life->since ? interval : life->since;
	__u64 until = life->until < mapping->until ? life->until : mapping->until;

	since = mapping->since > since ? mapping->since : since;
	until = until < now ? until : now;
	return until > since ? until - since : 0;
}

/* How likely it is that a thread with this comm belonged to this life. */
enum likelihood { UNLIKELY, POSSIBLE, LIKELY };

static enum likelihood likelihood(const struct life *life, const char *comm)
{
	if (!comm || comms_have(&life->comms, comm))
		return LIKELY;
	return life->comms.incomplete ? POSSIBLE : UNLIKELY;
}

/* What was found so far for an address. */
struct found_mapping {
	const char *comm;
	__u64 address, interval, now;
	enum likelihood likeliest;
	__u64 longest;
	bool data;
	struct spot spot;
};

/* Whether it matters which of both mappings was there. Code that was made at run time is another program's
 * after an exec. A program's own data are mapped over what it has mapped of the same file before, and over
 * memory. */
static bool is_other(const struct found_mapping *found, const struct spot *spot)
{
	const struct spot *known = &found->spot;

	if (!known->file)
		return false;
	if (found->data)
		return known->file != spot->file && known->file->kind == FILE_REGULAR &&
		       spot->file->kind == FILE_REGULAR;
	return known->file != spot->file || known->offset != spot->offset ||
	       (spot->file->kind == FILE_ANONYMOUS && known->life != spot->life);
}

static void consider_mapping(struct found_mapping *found, const struct life *life,
			     const struct mapping *mapping)
{
	struct spot spot = {.file = mapping->file,
			    .offset = found->address - mapping->begin + mapping->offset,
			    .since = mapping->since > life->since ? mapping->since : life->since,
			    .until = mapping->until < life->until ? mapping->until : life->until,
			    .life = life->since};
	enum likelihood likely;
	__u64 time;

	if (found->address < mapping->begin || found->address >= mapping->end)
		return;
	likely = likelihood(life, found->comm);
	time = likely < found->likeliest ? 0 : lived(found->interval, life, mapping, found->now);
	if (!time)
		return;
	if (likely > found->likeliest) {
		found->spot = (struct spot){0};
		found->longest = 0;
	}
	found->likeliest = likely;
	spot.ambiguous = found->spot.ambiguous || is_other(found, &spot);
	if (time > found->longest)
		found->spot = spot;
	else
		found->spot.ambiguous = spot.ambiguous;
	found->longest = time > found->longest ? time : found->longest;
}

/* Finds what was mapped at the address between `interval` and `until` (0: now): in the lives of the greatest
 * likelihood, the mapping that existed longest. Returns false if there is none. */
static bool search_lives(const struct mappings *mappings, const struct process *process, const char *comm,
			 __u64 address, __u64 interval, __u64 until, struct spot *place)
{
	const struct life *last = process->life;
	/* How long a mapping has been there says something only beside another one. */
	bool choice = last && (last->before || last->space->nr_ended);
	struct found_mapping found = {.comm = comm,
				      .address = address,
				      .interval = interval,
				      .now = until    ? until
					     : choice ? clock_ns(CLOCK_MONOTONIC)
						      : MAPPINGS_FOREVER,
				      .likeliest = UNLIKELY,
				      .data = mappings->data};

	for (const struct life *life = process->life; life; life = life->before) {
		const struct space *space = life->space;
		size_t i = first_after(space, address);

		for (size_t n = 0; n < space->nr_ended; n++)
			consider_mapping(&found, life, &space->ended[n]);
		if (i < space->nr)
			consider_mapping(&found, life, current_mapping(space, i));
	}
	*place = found.spot;
	return found.longest;
}

struct spot mappings_find(struct mappings *mappings, pid_t pid, const char *comm, __u64 address, __u64 since)
{
	struct process *process = find_process(mappings, pid);
	struct spot place = {0};

	if (process && search_lives(mappings, process, comm, address, since, 0, &place))
		return place;
	if (process && process->looked >= since)
		return place;
	mappings_look(mappings, pid);
	process = find_or_make(mappings, pid);
	process->looked = clock_ns(CLOCK_MONOTONIC);
	search_lives(mappings, process, comm, address, since, 0, &place);
	return place;
}

struct spot mappings_find_at(struct mappings *mappings, pid_t pid, const char *comm, __u64 address,
			     __u64 since, __u64 moment)
{
	const struct process *process = moment ? find_process(mappings, pid) : NULL;
	struct spot place = {0};

	if (process && search_lives(mappings, process, comm, address, moment, moment + 1, &place))
		return place;
	return mappings_find(mappings, pid, comm, address, since);
}

void mappings_each(struct mappings *mappings, pid_t pid,
		   void (*each)(void *context, struct mapped_file *file, __u64 begin, __u64 end,
				__u64 offset),
		   void *context)
{
	const struct process *process = find_process(mappings, pid);
	const struct space *space = process && process->life ? process->life->space : NULL;

	for (size_t i = 0; space && i < space->nr; i++) {
		const struct mapping *mapping = current_mapping(space, i);

		each(context, mapping->file, mapping->begin, mapping->end, mapping->offset);
	}
}

/* The life that there was just before `until`; MAPPINGS_FOREVER: the one of the greatest likelihood, of
 * several the newest. NULL: there is none. */
static const struct life *life_before(const struct process *process, const char *comm, __u64 since,
				      __u64 until)
{
	const struct life *best = NULL;

	for (const struct life *life = process->life; life && life->until > since; life = life->before) {
		if (until != MAPPINGS_FOREVER && life->since < until)
			return life;
		if (until == MAPPINGS_FOREVER && (!best || likelihood(life, comm) > likelihood(best, comm)))
			best = life;
	}
	return best;
}

static bool was_there(const struct mapping *mapping, __u64 moment)
{
	return mapping->since <= moment && moment < mapping->until;
}

/* Of the mappings that ended after the address, or not after it, the nearest one at this moment. */
static const struct mapping *nearest(const struct space *space, __u64 address, bool after, __u64 moment)
{
	size_t i = first_after(space, address);
	const struct mapping *found = NULL;

	while (after && !found && i < space->nr) {
		found = was_there(current_mapping(space, i), moment) ? current_mapping(space, i) : NULL;
		i++;
	}
	while (!after && !found && i > 0) {
		i--;
		found = was_there(current_mapping(space, i), moment) ? current_mapping(space, i) : NULL;
	}
	for (size_t n = 0; n < space->nr_ended; n++) {
		const struct mapping *ended = &space->ended[n];

		if ((ended->end > address) == after && was_there(ended, moment) &&
		    (!found || (after ? ended->begin < found->begin : ended->begin > found->begin)))
			found = ended;
	}
	return found;
}

void mappings_beside(struct mappings *mappings, pid_t pid, const char *comm, __u64 address, __u64 since,
		     __u64 until, struct beside beside[2])
{
	const struct process *process = find_process(mappings, pid);
	const struct life *life = process ? life_before(process, comm, since, until) : NULL;

	for (size_t n = 0; n < 2; n++) {
		const struct mapping *mapping = life ? nearest(life->space, address, n, until - 1) : NULL;

		beside[n] = mapping ? (struct beside){mapping->file, mapping->begin, mapping->offset}
				    : (struct beside){0};
	}
}

bool mappings_has_ended(struct mappings *mappings, pid_t pid)
{
	const struct process *process = find_process(mappings, pid);

	return !process || process->exited != MAPPINGS_FOREVER;
}

const struct mapped_file *mappings_program(struct mappings *mappings, pid_t pid)
{
	const struct process *process = find_process(mappings, pid);

	return process && process->life ? process->life->program : NULL;
}

static const char *jit_path(pid_t own_pid, const struct root *root, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)own_pid);
	return root_path(root, path, text, size);
}

/* The life that began then; the current one if it is forgotten. */
static const struct life *life_since(const struct process *process, __u64 since)
{
	for (const struct life *life = process->life; life; life = life->before)
		if (life->since == since)
			return life;
	return process->life;
}

const char *mappings_jit(struct mappings *mappings, pid_t pid, __u64 since, unsigned int generation,
			 struct map_writer *writer, char *text, size_t size)
{
	struct process *process = find_process(mappings, pid);
	const struct ancestor *ancestor;
	const struct life *life;
	unsigned int own = 0;

	if (!process || !process->life)
		return NULL;
	look_for_jit(mappings, process);
	life = life_since(process, since);
	ancestor = life->ancestor;
	/* An exec does not change the number: the map may be that of the program after it. */
	if (life != process->life && ancestor)
		own = ancestor->generation + 1;
	*writer = (struct map_writer){life->owner, process->life->began_at,
				      process->exited != MAPPINGS_FOREVER};
	if (generation == own)
		return jit_path(process->life->own_pid, life->root, text, size);
	for (generation -= generation > own; ancestor && generation; generation--)
		ancestor = ancestor->before;
	if (!ancestor)
		return NULL;
	*writer = ancestor->writer;
	return jit_path(ancestor->own_pid, ancestor->root, text, size);
}

static bool is_older(const struct mapping *mapping, const struct mapping *than)
{
	return !than || mapping->since < than->since ||
	       (mapping->since == than->since && mapping->begin < than->begin);
}

/* The newest of the dumps that are older than this one; NULL: of all. Programs map the file that they dump
 * their code into, with the right to execute it, so that others notice it. */
static const struct mapping *older_dump(const struct space *space, const struct mapping *than)
{
	const struct mapping *found = NULL;

	for (size_t i = 0; i < space->nr + space->nr_ended; i++) {
		const struct mapping *mapping =
			i < space->nr ? current_mapping(space, i) : &space->ended[i - space->nr];

		if (jitdump_is_named(mapping->file->path) && is_older(mapping, than) &&
		    (!found || is_older(found, mapping)))
			found = mapping;
	}
	return found;
}

/* Anybody may map any number of files that are called so. */
#define DUMPS_MOST 4

const char *mappings_jitdump(struct mappings *mappings, pid_t pid, __u64 since, unsigned int number,
			     struct map_writer *writer, char *text, size_t size)
{
	struct process *process = find_process(mappings, pid);
	const struct life *life = process && process->life ? life_since(process, since) : NULL;
	const struct mapping *dump = life ? older_dump(life->space, NULL) : NULL;

	for (unsigned int i = 0; dump && i < number; i++)
		dump = older_dump(life->space, dump);
	if (!dump || number >= DUMPS_MOST)
		return NULL;
	look_for_jit(mappings, process);
	/* It has mapped the file, so it is its own. */
	*writer = (struct map_writer){.user = life->owner};
	return root_path(life->root, dump->file->path, text, size);
}

bool mappings_replaced(struct mappings *mappings)
{
	bool replaced = mappings->replaced;

	mappings->replaced = false;
	return replaced;
}

__u64 mappings_dropped(const struct mappings *mappings)
{
	return mappings->dropped;
}
