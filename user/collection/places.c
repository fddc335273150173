// SPDX-License-Identifier: GPL-2.0-only
#include "collection/places.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/processes.h"

static void add_place(struct places *places, int cpu, pid_t tid, int cgroup)
{
	*xappend(places->list, places->nr) = (struct place){.cpu = cpu, .tid = tid, .cgroup = cgroup};
}

uid_t place_owner(pid_t tid)
{
	struct stat stat_of;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/status", proc_number(tid));
	return stat(path, &stat_of) ? (uid_t)-1 : stat_of.st_uid;
}

void places_add_cpus(struct places *places, const struct cpus *cpus, int cgroup)
{
	for (int cpu = cpus_next(cpus, 0); cpu >= 0; cpu = cpus_next(cpus, cpu + 1))
		add_place(places, cpu, -1, cgroup);
}

void places_of_thread(struct places *places, pid_t tid)
{
	places->nr = 0;
	add_place(places, -1, tid, -1);
}

/* Adds a thread unless it is there already: `-p PID,TID` may name one process twice. */
static void add_once(struct places *places, pid_t process, pid_t tid)
{
	for (size_t i = 0; i < places->nr; i++)
		if (places->list[i].tid == tid)
			return;
	add_place(places, -1, tid, -1);
	places->list[places->nr - 1].id = tid;
	places->list[places->nr - 1].process = process;
	places->list[places->nr - 1].owner = place_owner(tid);
}

static pid_t process_of(pid_t tid)
{
	char number[32];

	return proc_status(tid, "Tgid:", number, sizeof(number)) ? atoi(number) : 0;
}

static int add_process(struct places *places, pid_t pid)
{
	pid_t process = process_of(pid);
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", proc_number(pid));
	dir = opendir(path);
	if (!dir)
		return -ESRCH;
	/* A first thread that has ended before the others is still there, and can't be measured. */
	while ((entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]) && !proc_is_zombie(atoi(entry->d_name)))
			add_once(places, process, atoi(entry->d_name));
	closedir(dir);
	return 0;
}

/* /proc has a directory for every thread, though it lists only those of processes. */
static int add_thread(struct places *places, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", proc_number(tid));
	if (access(path, F_OK) || proc_is_zombie(tid))
		return -ESRCH;
	add_once(places, process_of(tid), tid);
	return 0;
}

static int gone(struct refusal *refusal, const char *what, pid_t id)
{
	refuse(refusal, STATUS_REFUSED, "%s %d", what, id);
	refusal->error = ESRCH;
	because(refusal, "there is no such %s", what);
	return instead(refusal, "it may have ended; see ps -e%s", *what == 't' ? "L" : "");
}

/* Whether the target is nhmtap's own thread, for which no permission is needed. */
static bool is_self(const struct target *target)
{
	return !target->nr_pids && target->nr_tids == 1 && target->tids[0] == gettid();
}

/* Refuses if /proc belongs to another pid namespace: threads are found by the numbers in /proc. */
static int foreign(struct refusal *refusal)
{
	refuse(refusal, STATUS_REFUSED, "processes or threads by their ids");
	because(refusal, "/proc is another pid namespace's, and has other numbers");
	return instead(refusal, "mount -t proc proc /proc, or start it all with unshare --mount-proc");
}

int places_of_threads(struct places *places, const struct target *target, struct refusal *refusal)
{
	places->nr = 0;
	if (!proc_is_ours() && !is_self(target))
		return foreign(refusal);
	for (size_t i = 0; i < target->nr_pids; i++)
		if (add_process(places, target->pids[i]))
			return gone(refusal, "process", target->pids[i]);
	for (size_t i = 0; i < target->nr_tids; i++)
		if (add_thread(places, target->tids[i]))
			return gone(refusal, "thread", target->tids[i]);
	return 0;
}

size_t places_new(const struct places *before, const struct places *now)
{
	size_t count = 0;

	for (size_t i = 0; i < now->nr; i++) {
		size_t j = 0;

		while (j < before->nr && before->list[j].tid != now->list[i].tid)
			j++;
		count += j == before->nr;
	}
	return count;
}

bool place_online(const struct place *place, const struct cpus *online)
{
	return place->cpu < 0 || cpus_has(online, place->cpu);
}

size_t places_online(const struct places *places, const struct cpus *online)
{
	size_t nr = 0;

	for (size_t i = 0; i < places->nr; i++)
		nr += place_online(&places->list[i], online);
	return nr;
}

void places_release(struct places *places)
{
	free(places->list);
	*places = (struct places){0};
}
