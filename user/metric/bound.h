/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How far an estimate can be off. Events that are more than the counters take turns, and what happened while
 * one had none is not known; its scaled count supposes that it went on as before. How good that is can be
 * told from how unlike each other the turns were.
 *
 * The counts are read every few turns of the kernel's (see TURNS_MOST), and the estimate is made again
 * without each of these readings: the jackknife (Quenouille, Tukey). It needs no formula of its own for a
 * ratio or a metric, whose inputs err together where they were counted together. The bound is the quantile of
 * Student's distribution for 99 %, because readings that follow each other are no independent draws, plus
 * what three occurrences more would change: of something that was never seen up to three may have happened
 * unseen in as long a time, 19 times of 20.
 *
 * It is a bound for at least 95 % of runs, of programs that do not repeat themselves in time with the
 * kernel's turns: such a program shows the same part of itself at each turn, which no reading reveals.
 */
#ifndef NHMTAP_BOUND_H
#define NHMTAP_BOUND_H

#include <stddef.h>

#include "count.h"

#define BOUND_LEVEL 0.95

/* Readings that are kept. When they are full each two neighbours become one. */
#define TURNS_MOST 64
/* Readings of an event that it takes to say anything. */
#define TURNS_LEAST 8

struct turns {
	size_t nr_events;
	size_t nr;		 /* that are complete; the one after them is being filled */
	__u64 first_ns, span_ns; /* how long one is: at first, and now */
	__u64 last_ns;		 /* how long the one being filled is so far */
	struct count *list;	 /* each event's count in each of them */
};

/* span_ns: how long one is at first. */
void turns_open(struct turns *turns, size_t nr_events, __u64 span_ns);
void turns_close(struct turns *turns);
/* Adds what each event counted in the ns since it was called before. */
void turns_add(struct turns *turns, const struct count *since, __u64 ns);
void turns_clear(struct turns *turns);

struct bound {
	double low, high; /* infinite where too little was read to say */
	size_t turns;	  /* readings that it rests on; 0: it needs none, everything was counted */
};

/* An estimate made from the events' counts, say a metric. Returns 0, or -1 if it can't be made. */
typedef int (*estimate_fn)(const void *what, const struct count *counts, double *value);

/* Bounds an estimate from these events (their places in turns and counts). Returns 0, or -1 if there is
 * no estimate. */
int bound_of(const struct turns *turns, const struct count *counts, const size_t *events, size_t nr,
	     estimate_fn estimate, const void *what, struct bound *bound);

/* Bounds the scaled count of one event that ran: never below what was counted. */
void bound_of_count(const struct turns *turns, const struct count *counts, size_t event, struct bound *bound);

#endif
