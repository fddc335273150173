/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The facilities of the PMU and of the kernel that nhmtap leans on: one row
 * each. Whether one works is found out by using it.
 */
#ifndef NHMTAP_FACILITY_H
#define NHMTAP_FACILITY_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "collection/trial.h"
#include "host/host.h"
#include "host/processor.h"
#include "refusal.h"

struct facility;
struct finding;

/* Tries a facility. Returns 0 if it works, or -1 with the refusal. */
typedef int (*try_fn)(const struct facility *facility, struct host *host, struct finding *finding,
		      struct refusal *refusal);

struct facility {
	const char *name;  /* of --need: "mem" */
	const char *title; /* what it is */
	try_fn try;
	/* The event to try: on a CPU that has a table, on others with a core PMU, and without one.
	 * NULL: that of the column before. */
	const char *known, *core, *none;
	struct trial trial; /* its events are filled in */
	const char *never;  /* why it can't work with any kernel; NULL where it can */
};

extern const struct facility facilities[];
extern const size_t nr_facilities;

/* What a try gave. */
struct finding {
	const struct facility *facility;
	const char *guide; /* the section of the guide to this CPU's PMU that describes it; NULL: none */
	bool works;
	struct found found;	/* found.event is "" where no event was tried */
	struct refusal refusal; /* if it does not work */
};

/* The facility of this name, of `length` characters, or NULL. */
const struct facility *facility_find(const char *name, size_t length);

/* Tries it; nothing stays open. */
void facility_try(const struct facility *facility, struct host *host, struct finding *finding);

/* Counters that this process can have at the same time, now, on the CPU that it runs on. */
struct free_counters {
	int general, fixed;	/* -1: can't be told */
	struct refusal refusal; /* why there are fewer than there should be */
};

/*
 * Counts groups of increasing size until one never runs. Opening a group is no proof, because the kernel
 * opens any that would fit an idle PMU. Tries at most `general` and `fixed` counters.
 */
void free_counters_count(struct free_counters *counters, struct host *host, int general, int fixed);

#endif
