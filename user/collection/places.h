/* SPDX-License-Identifier: GPL-2.0-only */
/* The places at which a plan's events are counted. Each is a CPU, a thread, or a cgroup on a CPU. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include <sys/types.h>

#include "base/refusal.h"
#include "host/host.h"
#include "plan/target.h"

struct place {
	int cpu;       /* -1: any */
	pid_t tid;     /* -1: all threads */
	int cgroup;    /* the index of one of the target's cgroups; -1: not limited to a cgroup */
	bool open;     /* its events are open; not while its CPU is offline */
	bool seen;     /* they have been open at some time */
	bool away;     /* its cgroup does not exist, so that nothing can be opened */
	__u64 ran_ns;  /* threads: the enabled time of its events, when all were last read */
	bool slept;    /* threads: none of them ran between the last two readings of all */
	pid_t id;      /* the target's threads: the id that it has now; 0: no such */
	pid_t process; /* of which it is one, as far as is known; 0: not known */
	uid_t owner; /* threads: whose files in /proc/TID are: root's if the thread may not be looked into */
	bool ended;  /* threads: it has ended, or its id has become another one's */
	bool taken;  /* threads: the kernel has taken its events away, and it goes on */
	__u64 sure_ns; /* threads: the enabled time up to which its events are known to be its own */
	bool stalled;  /* the enabled time of an event of the CPU stood still: the CPU was offline, though it
			  may be back */
};

struct places {
	struct place *list;
	size_t nr;
};

/* Adds a place on each of these CPUs, for the target's cgroup of this index; -1: for everything that runs
 * there. */
void places_add_cpus(struct places *places, const struct cpus *cpus, int cgroup);

/* Adds a place for one thread. */
void places_of_thread(struct places *places, pid_t tid);

/* Adds a place for each thread of the target's processes, and for each thread of the target, as they are now.
 * Returns 0, or -1 with the refusal if one does not exist. */
int places_of_threads(struct places *places, const struct target *target, struct refusal *refusal);

/* Whose files in /proc/TID are; -1: the thread has ended. */
uid_t place_owner(pid_t tid);

/* The number of threads in `now` that are not in `before`. */
size_t places_new(const struct places *before, const struct places *now);

/* Whether a place is on a CPU that is online, or on any CPU; and the number of such places. */
bool place_online(const struct place *place, const struct cpus *online);
size_t places_online(const struct places *places, const struct cpus *online);

void places_release(struct places *places);
