/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts, told apart by what --per names: a row of them for each CPU, core, …, and one row where
 * nothing is told apart. Rows appear as their CPUs do, and stay.
 */
#ifndef NHMTAP_TALLY_H
#define NHMTAP_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "collection/counters.h"
#include "cpus.h"
#include "host/host.h"
#include "plan/plan.h"

struct tally_row {
	struct place_key {
		int cpu, cgroup; /* -1: not told apart, as the others */
		struct topology at;
		pid_t tid;
	} key;
	char comm[16];       /* of the thread, where threads are told apart */
	struct cpus cpus;    /* those that it sums up; none where processes are counted */
	struct count *now;   /* an event's: so far */
	struct count *since; /* an event's: since the reading before */
	bool *has;           /* an event's: it is counted somewhere in this row */
};

struct tally {
	const struct plan *plan;
	const struct host *host;
	struct tally_row *rows;
	size_t nr;
	size_t *row_of; /* a place's */
};

void tally_begin(struct tally *tally, const struct plan *plan, const struct host *host);
void tally_release(struct tally *tally);

/* Reads all counters. */
void tally_read(struct tally *tally, struct counters *counters);

/* The next counters begin at zero. */
void tally_restart(struct tally *tally);

/* Puts what tells the row apart into a record: cpu, core, socket, node, tid, comm, cgroup. */
void tally_put(json_t *record, const struct tally *tally, const struct tally_row *row);

#endif
