/* SPDX-License-Identifier: GPL-2.0-only */
/* The facilities of the PMU and of the kernel that nhmtap depends on, one row each. Whether a facility works
 * is found out by using it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "base/refusal.h"
#include "collection/trial.h"
#include "host/host.h"
#include "host/processor.h"

struct facility;
struct finding;

/* Tries a facility. Returns 0 if it works, or -1 with the refusal. */
typedef int (*try_fn)(const struct facility *facility, struct host *host, struct finding *finding,
		      struct refusal *refusal);

struct facility {
	const char *name;  /* name for --need: "mem" */
	const char *title; /* what it is, in a few words */
	try_fn try;
	/* The event to try on a CPU with a table, on other CPUs with a core PMU, and without a core PMU.
	 * NULL: the same as the one before. */
	const char *known, *core, *none;
	struct trial trial;  /* what is tried; its events are filled in */
	const char *offered; /* the event or term that the core PMU's driver has if the CPU can do it */
	const char *never;   /* why no kernel can make it work; NULL if one can */
};

extern const struct facility facilities[];
extern const size_t nr_facilities;

/* The result of trying a facility. */
struct finding {
	const struct facility *facility;
	const char *guide; /* section of the guide to this CPU's PMU; NULL if there is none */
	bool works;
	struct found found;	/* found.event is "" if no event was tried */
	struct refusal refusal; /* valid if it does not work */
};

/* The facility of this name, which has `length` characters; NULL if there is none. */
const struct facility *facility_find(const char *name, size_t length);

/* Tries a facility and fills in the finding. Nothing stays open. */
void facility_try(const struct facility *facility, struct host *host, struct finding *finding);

/*
 * The number of counters that this process can use at the same time, at present, on the CPU that it runs on.
 */
struct free_counters {
	int general, fixed;	/* -1 if not known */
	struct refusal refusal; /* why there are fewer than there should be */
};

/* Opens groups of increasing size until one does not run. It is not enough that a group can be opened: the
 * kernel opens any group that would fit an idle PMU. At most `general` and `fixed` counters are tried. */
void free_counters_count(struct free_counters *counters, struct host *host, int general, int fixed);
