/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts by the keys of --per: a row for each CPU, core, …, or one row in all without --per. Rows appear
 * with their CPUs, and stay.
 */
#ifndef NHMTAP_TALLY_H
#define NHMTAP_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "collection/counters.h"
#include "cpus.h"
#include "host/host.h"
#include "metric/bound.h"
#include "plan/plan.h"
#include "record/fields.h"

struct tally_row {
	struct place_key {
		int cpu, cgroup; /* -1: not a key, as for the others */
		struct topology at;
		pid_t tid;
	} key;
	unsigned int generation;	    /* of the cgroup's place: struct cgroup */
	char comm[16];			    /* of the thread, if thread is a key */
	struct cpus cpus;		    /* those that it sums up; none where processes are counted */
	struct count *now;		    /* an event's: so far */
	struct count *reported;		    /* an event's: so far, when it was last reported */
	struct count *since;		    /* an event's: what is to be reported, since then */
	struct count *turn;		    /* an event's: since the look before */
	struct turns turns, interval_turns; /* looks so far, and of what is to be reported */
	bool *has;			    /* an event's: it is counted somewhere in this row */
};

struct tally {
	const struct plan *plan;
	const struct host *host;
	struct tally_row *rows;
	size_t nr;
	size_t *row_of;	  /* a place's */
	size_t nr_places; /* that have one */
	__u64 span_ns;	  /* how often to look at first; 0: never, no event shares its counter */
	__u64 looked_ns;  /* CLOCK_MONOTONIC of the last look, 0: none yet */
	bool shared;	  /* an event has shared its counter */
	bool told;	  /* what was seen so far is reported */
};

void tally_begin(struct tally *tally, const struct plan *plan, struct host *host);
void tally_release(struct tally *tally);

/* Reads all counters between two reports; the spread of these readings bounds the estimates. */
void tally_look(struct tally *tally, struct counters *counters);

/* How long to wait for the next reading, in ns, if it was every_ns and reports are interval_ms apart (0: one
 * at the end). */
__u64 tally_pace(const struct tally *tally, __u64 every_ns, __u64 interval_ms);

/* Reads all counters for a report. */
void tally_read(struct tally *tally, struct counters *counters);

/* Whether the row is of something that is measured, or was in this interval. */
bool tally_has(const struct tally *tally, const struct tally_row *row);

/* The next counters begin at zero. */
void tally_restart(struct tally *tally);

/* Adds the row's keys to a record: cpu, core, socket, node, tid, comm, cgroup. */
void tally_add(struct fields *fields, const struct tally *tally, const struct tally_row *row);
void tally_put(json_t *record, const struct tally *tally, const struct tally_row *row);

#endif
