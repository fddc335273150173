/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Event names from files of other projects, read at run time:
 *
 *     tools/perf/pmu-events of a kernel's source, its arch/x86, or a CPU's folder below that
 *     a checkout of Intel's perfmon (mapfile.csv, CPU/events/NAME_core.json)
 *     what perf list -j writes (perf >= 6.3), one file
 *
 * These files have encodings only, which are not checked in any way. They tell nothing about counters,
 * errata, or what the kernel accepts.
 */
#pragma once

#include <stddef.h>
#include <jansson.h>
#include <linux/types.h>

#include "base/refusal.h"

struct pmu_event {
	const char *name;	 /* the file's spelling */
	const char *description; /* the file's description, "" if it has none */
	const char *pmu;	 /* "cpu_core"; NULL: the core's PMU, whatever its name */
	char *terms;		 /* "event=0xd1,umask=0x1", by the formats of the PMU */
	__u64 default_period;	 /* occurrences between two samples; 0 if the file does not say */
};

struct pmu_events {
	struct pmu_event *list; /* sorted by name without regard to case, then by PMU */
	size_t nr, room;
	char source[160];  /* "pmu-events, sapphirerapids v1.06" */
	json_t *documents; /* what was read; the events point to strings in it */
};

/*
 * Reads the core events of a CPU from `path`. `cpuid` is VENDOR-FAMILY-MODEL-STEPPING, as in mapfile.csv
 * ("GenuineIntel-6-8F-4"). Uncore events are left out. `events` owns its contents up to pmu_events_release(),
 * which may also be called on a zeroed struct and after a refusal. Returns 0, or -1 with the refusal.
 */
int pmu_events_read(struct pmu_events *events, const char *path, const char *cpuid, struct refusal *refusal);
void pmu_events_release(struct pmu_events *events);

/* The event of this name, ignoring case, for the PMU `pmu`; NULL means any PMU. NULL if there is none. */
const struct pmu_event *pmu_event_find(const struct pmu_events *events, const char *name, const char *pmu);
