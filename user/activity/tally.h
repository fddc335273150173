/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts by the keys of --per: a row for each CPU, core, …, or a single row without --per. A row is added
 * when one of its CPUs is first open, and is kept. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "base/cpus.h"
#include "collection/counters.h"
#include "host/host.h"
#include "metric/bound.h"
#include "plan/plan.h"
#include "record/fields.h"

struct tally_row {
	struct place_key {
		int cpu, cgroup; /* -1: not a key; the same for the members below */
		struct topology at;
		pid_t tid;
	} key;
	unsigned int generation;	    /* of the cgroup that the row counts: see struct cgroup */
	char comm[16];			    /* of the thread, if thread is a key */
	struct cpus cpus;		    /* CPUs that it sums up; empty if processes are counted */
	struct count *now;		    /* per event: count so far */
	struct count *reported;		    /* per event: count when it was last reported */
	struct count *since;		    /* per event: difference of both, to be reported */
	struct count *turn;		    /* per event: counted since the last reading */
	struct turns turns, interval_turns; /* readings so far, and those of this interval */
	bool *has;			    /* per event: it is counted somewhere in this row */
};

struct tally {
	const struct plan *plan;
	const struct host *host;
	struct tally_row *rows;
	size_t nr;
	size_t *row_of;	  /* per place */
	size_t nr_places; /* size of row_of */
	__u64 span_ns;	  /* first period of readings; 0: none, because no event shares its counter */
	__u64 looked_ns;  /* time of the last reading, CLOCK_MONOTONIC; 0: none yet */
	__u64 began_ns, began_stamp; /* CLOCK_MONOTONIC and the time stamp counter when it began */
	double *most_per_cycle;	     /* per event: see event_most_per_cycle() */
	double *paces;		     /* the same per ns */
	bool *counted;		     /* per event: it was counted, though no row has it any more */
	double clock;		     /* the most cycles per ns that a count has shown; 0: none yet */
	bool shared;		     /* an event has shared its counter */
	bool alone;		     /* a group of events has the counters alone */
	bool told;		     /* all readings so far were reported */
};

void tally_begin(struct tally *tally, const struct plan *plan, struct host *host);
void tally_release(struct tally *tally);

/* Reads all counters between two reports. The spread of these readings gives the bounds of estimates. */
void tally_look(struct tally *tally, struct counters *counters);

/* Returns the time until the next reading, in ns. `every_ns`: the current time between readings.
 * `interval_ms`: time between reports; 0: one report at the end. */
__u64 tally_pace(const struct tally *tally, __u64 every_ns, __u64 interval_ms);

/* Reads all counters for a report. If there was no place to count at by the last one (the target had ended,
 * no cgroup fits a pattern), makes a row without counts, so that each event has a record that says why. */
void tally_read(struct tally *tally, struct counters *counters, bool last);

/* Must be called after tally_read() if the kernel has ended the counting of the command: all counts then have
 * the status "not_counted". */
void tally_void(struct tally *tally);

/* Whether what the row counts exists, or existed in this interval. */
bool tally_has(const struct tally *tally, const struct tally_row *row);

/* Must be called when counters are opened again, since they begin at zero. */
void tally_restart(struct tally *tally);

/* Add the row's keys to a record: cpu, core, socket, node, tid, comm, cgroup. */
void tally_add(struct fields *fields, const struct tally *tally, const struct tally_row *row);
void tally_put(json_t *record, const struct tally *tally, const struct tally_row *row);
