/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Event names from files that others write, read while the program runs:
 *
 *     tools/perf/pmu-events of a kernel's source, its arch/x86, or a CPU's folder below that
 *     a checkout of Intel's perfmon (mapfile.csv, CPU/events/NAME_core.json)
 *     what perf list -j writes (perf >= 6.3), one file
 *
 * They give encodings only, which are not checked against anything: nothing about counters, errata or what
 * the kernel accepts follows from them.
 */
#ifndef NHMTAP_PMU_EVENTS_H
#define NHMTAP_PMU_EVENTS_H

#include <stddef.h>
#include <jansson.h>
#include <linux/types.h>

#include "refusal.h"

struct pmu_event {
	const char *name;	 /* as the file spells it */
	const char *description; /* the file's, "" if it has none */
	const char *pmu;	 /* "cpu_core"; NULL: the core's, whatever it is called */
	char *terms;		 /* "event=0xd1,umask=0x1", for the formats of the PMU */
	__u64 default_period;	 /* occurrences between two samples; 0 if the file does not say */
};

struct pmu_events {
	struct pmu_event *list; /* sorted by name without regard to case, then by PMU */
	size_t nr;
	char source[160];  /* "pmu-events, sapphirerapids v1.06" */
	json_t *documents; /* what was read: texts point into it */
};

/*
 * Reads the core's events of a CPU from path; cpuid is VENDOR-FAMILY-MODEL-STEPPING as mapfile.csv has
 * it ("GenuineIntel-6-8F-4"). Uncore events are left out. Returns 0, or -1 with the refusal. They own
 * what they hold up to pmu_events_release(), which may also be called on zeroed ones and after a refusal.
 */
int pmu_events_read(struct pmu_events *events, const char *path, const char *cpuid, struct refusal *refusal);
void pmu_events_release(struct pmu_events *events);

/* The event of this name, without regard to case, that `pmu` counts; NULL: any PMU. NULL if there is none. */
const struct pmu_event *pmu_event_find(const struct pmu_events *events, const char *name, const char *pmu);

#endif
