/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel lets groups of events that share counters take turns in a fixed order and for a fixed time. A
 * program that repeats itself in step with that would show each group the same part of itself for ever. So
 * from time to time one group, chosen at random, has the counters alone for a random time: the others are
 * disabled meanwhile, and after that they go on in an order that nobody can foretell. No counting time is
 * lost, and all groups have the same share of it. They miss the time between disabling and enabling the
 * chosen group, two interrupts of another CPU: on the emulated Nehalem 32 us, 0.1 % of their enabled time.
 *
 * The kernel doesn't take the time during which a group is disabled for enabled time. It is added here: the
 * group that is alone is enabled for exactly as long as the others would have been.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "plan/plan.h"

#define SOLO_NONE ((size_t)-1)

struct solo {
	size_t *leaders; /* of the groups that share the core's counters; none if there are fewer than two */
	size_t nr;
	size_t left;	 /* the first of them, which have not been chosen yet in this round */
	size_t rounds;	 /* how often all were to take turns again */
	size_t in_a_row; /* groups that have had the counters alone, one after the other */
	size_t alone;	 /* the event that leads the group that has the counters alone, or is to; SOLO_NONE */
	struct solo_place {
		size_t alone;	/* the same at a place, where it may have been opened again */
		__u64 since_ns; /* the enabled time of that group, up to which it was added to the others */
	} * places;
	size_t nr_places;
	__u64 random;
};

void solo_begin(struct solo *solo, const struct plan *plan);
void solo_release(struct solo *solo);

/* Whether an event is in one of these groups; and whether its group is disabled at a place. */
bool solo_takes_turns(const struct solo *solo, const struct plan *plan, size_t event);
bool solo_silences(const struct solo *solo, const struct plan *plan, size_t event, size_t place);

/* Whether one of them has the counters of a place alone. */
bool solo_is_on(const struct solo *solo, size_t place);

/* The event whose enabled time goes on at a place. */
size_t solo_clock(const struct solo *solo, size_t place);

/* Must be called when all events of a place are, or are to be, enabled or closed. */
void solo_forget(struct solo *solo, size_t place);

/* Chooses the group that is to have the counters alone from now on. None if not `any`, or if half of them
 * have had that one after the other: all are to take turns again. */
void solo_choose(struct solo *solo, bool any);

/* Has the groups of a place follow that choice. fds: of its events, -1 where they are not open. now_ns: the
 * enabled time of the chosen one. */
void solo_switch(struct solo *solo, size_t place, const int *fds, __u64 now_ns);

/* The enabled time that the silent groups of a place have missed since the previous call. One must be alone
 * there. */
__u64 solo_missed_ns(struct solo *solo, size_t place, __u64 now_ns);
