/* SPDX-License-Identifier: GPL-2.0-only */
/* Events by name: perf's own names, and those of the tables in events/. */
#ifndef NHMTAP_EVENT_NAMES_H
#define NHMTAP_EVENT_NAMES_H

#include <linux/types.h>

#include "event/known_event.h"

struct generic_event {
	const char *name;
	const char *alias; /* another spelling, or NULL */
	__u32 type;        /* PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE */
	__u64 config;      /* PERF_COUNT_… (perf_event.h) */
	const char *unit;  /* of the count, "" for a plain number */
};

extern const struct generic_event generic_events[];
extern const size_t nr_generic_events;

/* perf's hardware and software events; NULL if it is none of them. */
const struct generic_event *generic_event_find(const char *name);

/* perf's cache events, "L1-dcache-load-misses": fills config of PERF_TYPE_HW_CACHE, returns 0; or
 * returns -1 if it is none. */
int cache_event_find(const char *name, __u64 *config);

/* An event of a CPU's table, without regard to case and with ':' as good as '.'; NULL if not there. */
const struct known_event *known_event_find(const struct cpu_events *cpu, const char *name);

/* Writes up to `most` names that are close to this one, ", " between them; returns how many. cpu
 * may be NULL. */
int nearest_names(const struct cpu_events *cpu, const char *name, int most, char *text, size_t size);

#endif
