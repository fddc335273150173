/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tables in events/ know about a CPU, as the generator writes it into C.
 * Everything here is constant data: nothing is owned, nothing is to be freed.
 */
#ifndef NHMTAP_KNOWN_EVENT_H
#define NHMTAP_KNOWN_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

/* One event of a CPU by name. */
struct known_event {
	const char *name;        /* Intel's spelling: "INST_RETIRED.ANY_P" */
	const char *description; /* one line, ours */
	const char *topic;       /* "cache", "pipeline", … */
	/* As perf_event_attr.config has it (guide, IA32_PERFEVTSELx): event 0-7, umask 8-15,
	 * edge 18, any 21, inv 23, cmask 24-31. */
	__u64 config;
	__u64 config1;         /* OFFCORE_RSP_0 or the load-latency threshold, else 0 */
	__u64 default_period;  /* occurrences between two samples, from the table's source */
	__u32 counters;        /* bit i: general counter i can count it; bit 32-fixed is fixed_counter */
	__s8 fixed_counter;    /* 0-2 where a fixed counter counts it too, else -1 */
	__u8 precise;          /* PEBS, by the table: 0 never, 1 can, 2 only so */
	const char *errata;    /* "AAJ80", or NULL */
	const char *source;    /* what the row is taken from */
};

/* One CPU: which processors it is and what it counts. */
struct cpu_events {
	const char *name;             /* "nehalem-ep" */
	const char *vendor;           /* CPUID's, "GenuineIntel" */
	const struct cpu_model {
		__u32 family, model;  /* display family and model (CPUID.1) */
	} *models;
	size_t nr_models;
	const struct known_event *events; /* sorted by name, without regard to case */
	size_t nr_events;
};

/* Every CPU that events/ has a folder for; written by events/generate.py. */
extern const struct cpu_events known_cpus[];
extern const size_t nr_known_cpus;

#endif
