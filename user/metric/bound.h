/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How far an estimate can be off. If there are more events than counters, the kernel schedules them in turns.
 * What happens while an event has no counter is not known; the scaled count assumes that it continues at the
 * same rate. How good that assumption is can be judged by how much the turns differ from each other.
 *
 * The counts are read every few turns of the kernel (see TURNS_MOST), and the estimate is computed again
 * without each of these readings: the jackknife (Quenouille, Tukey). It needs no separate formula for a ratio
 * or a metric, whose inputs have correlated errors if they were counted together. The bound has three parts,
 * of which the first is independent of the others:
 *
 * - The standard error times the quantile of Student's distribution for 99 %. Consecutive readings are not
 *   independent draws, so the error is that of blocks of 1, 2, 4 and 8 readings, whichever is largest.
 * - The change that three more occurrences would make: if something was never seen, then in 19 of 20 cases
 *   it happened at most three times unseen in a period of the same length.
 * - What may have happened between the event's turns. Phases of the program that are shorter than an absence
 *   of the event can fall into absences only, and no reading shows them. For the most time that such phases
 *   can take in 19 of 20 cases (see unseen_ns()), the event may have had its highest possible pace, or none.
 *
 * An event can't have occurred more often than at its highest pace in all the time without a counter. If
 * there are too few readings for the others, this alone bounds a count.
 *
 * The bound holds for at least 95 % of runs. A program that repeats itself in step with the kernel's turns
 * would show the same part of itself in each turn, which no reading reveals; so the order of the turns is
 * mixed (collection/solo.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/count.h"

#define BOUND_LEVEL 0.95

/* The number of readings that are kept. When there are this many, each two neighbours are merged into one. */
#define TURNS_MOST 64
/* The least number of readings of an event from which a bound is computed. */
#define TURNS_LEAST 8

struct turns {
	size_t nr_events;
	size_t nr;		 /* complete readings; the one after them is being filled */
	__u64 first_ns, span_ns; /* the duration of a reading: initially, and now */
	__u64 last_ns;		 /* the duration so far of the one being filled */
	__u64 total_ns;		 /* the duration of all */
	struct count *list;	 /* the count of each event in each reading */
	__u64 turn_ns;		 /* the length of a turn of the kernel */
	struct absence {
		__u64 now_ns, longest_ns; /* enabled time without a counter: of the last readings, and ever */
	} * absences;			  /* of each event */
	/* The highest pace of each event, in occurrences per ns. The caller's; NULL: only what the readings
	 * show is part of bounds. */
	const double *paces;
};

/* `span_ns` is the initial duration of a reading. */
void turns_open(struct turns *turns, size_t nr_events, __u64 span_ns, __u64 turn_ns);
void turns_close(struct turns *turns);
/* Adds what each event has counted since the previous call, `ns` ago. */
void turns_add(struct turns *turns, const struct count *since, __u64 ns);
void turns_clear(struct turns *turns);

struct bound {
	double low, high; /* infinite if there are too few readings */
	size_t turns;	  /* readings that it is computed from; 0: none needed, everything was counted */
	double absent_ns; /* the longest time in which one of the events had no counter, as far as known */
	bool capped;	  /* `high` is the most that there can be; the turns leave more open */
};

/* Computes an estimate, such as a metric, from the events' counts. Returns 0, or -1 if it can't be
 * computed. */
typedef int (*estimate_fn)(const void *what, const struct count *counts, double *value);

/* Computes the bound of an estimate that depends on these events (their indices in turns and counts). With
 * too few readings, it follows from the bounds of their counts. Returns 0, or -1 if there is no estimate. */
int bound_of(const struct turns *turns, const struct count *counts, const size_t *events, size_t nr,
	     estimate_fn estimate, const void *what, struct bound *bound);

/* Computes the bound of the scaled count of an event that ran. It is never below what was counted, and with
 * paces never above what the core is capable of in the time without a counter: the only upper bound if there
 * are too few readings. */
void bound_of_count(const struct turns *turns, const struct count *counts, size_t event, struct bound *bound);
