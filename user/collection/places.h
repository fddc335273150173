/* SPDX-License-Identifier: GPL-2.0-only */
/* The places at which a plan's events are counted: a CPU, a thread or a cgroup on a CPU each. */
#ifndef NHMTAP_PLACES_H
#define NHMTAP_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include <sys/types.h>

#include "host/host.h"
#include "plan/target.h"
#include "refusal.h"

struct place {
	int cpu;      /* -1: any */
	pid_t tid;    /* -1: whatever runs there */
	int cgroup;   /* one of the target's, by its index; -1: any cgroup */
	bool open;    /* its events are; not while its CPU is offline */
	bool seen;    /* they were, at some time */
	bool away;    /* its cgroup is: there is nothing that could be opened */
	__u64 ran_ns; /* of a thread: its first event's clock, when all were last read */
	bool stalled; /* the clock of an event of the CPU stood still: it was gone, though it may be back */
};

struct places {
	struct place *list;
	size_t nr;
};

/* Adds a place on each of these CPUs, for a cgroup by its index; -1: for everything that runs there. */
void places_add_cpus(struct places *places, const struct cpus *cpus, int cgroup);

/* A place for the one thread. */
void places_of_thread(struct places *places, pid_t tid);

/* A place for each thread of the target's processes, and each thread of the target, as they are
 * now. Returns 0, or -1 with the refusal: one is not there. */
int places_of_threads(struct places *places, const struct target *target, struct refusal *refusal);

/* How many threads of `now` are not in `before`. */
size_t places_new(const struct places *before, const struct places *now);

/* Whether a place is on a CPU that is online, or on any; and how many are. */
bool place_online(const struct place *place, const struct cpus *online);
size_t places_online(const struct places *places, const struct cpus *online);

void places_release(struct places *places);

#endif
