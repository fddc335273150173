/* SPDX-License-Identifier: GPL-2.0-only */
/* Events by name: perf's own names, and those of the tables in events/. */
#pragma once

#include <stddef.h>
#include <linux/types.h>

#include "tables/known_event.h"

/* On which sides (user's, kernel's) the kernel counts one of its own events. */
enum event_sides {
	SIDES_BOTH,    /* by where the CPU was: a fault of the program, or of the kernel */
	SIDES_KERNEL,  /* always in the kernel */
	SIDES_IGNORED, /* a count has all, whichever sides are asked for; samples are of their sides */
	SIDES_NONE,    /* it never counts anything */
};

struct generic_event {
	const char *name;
	const char *alias; /* another spelling, or NULL */
	__u32 type;	   /* PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE */
	__u64 config;	   /* PERF_COUNT_… (perf_event.h) */
	const char *unit;  /* unit of the count, "" for a plain number */
	int architectural; /* the bit of CPUID.0AH:EBX that is set if it is missing (intel_arch_events_map[],
			      arch/x86/events/intel/core.c), else -1 */
	enum event_sides sides;
	const char *sides_why;	  /* why, unless it counts on both sides: the rest of "the event …" */
	const char *sides_source; /* and the function of the kernel that shows it */
};

extern const struct generic_event generic_events[];
extern const size_t nr_generic_events;

/* Looks up one of perf's hardware and software events; NULL if it is none. */
const struct generic_event *generic_event_find(const char *name);

/* The generic event of this type and config; NULL if there is none. */
const struct generic_event *generic_event_of(__u32 type, __u64 config);

/* Looks up one of perf's cache events, "L1-dcache-load-misses", and sets `config` for PERF_TYPE_HW_CACHE.
 * Returns 0, or -1 if it is none. */
int cache_event_find(const char *name, __u64 *config);

/* An event of a CPU's table by its name or an alias, compared as by name_order(); NULL if there is none.
 * `cpu` may be NULL. */
const struct known_event *known_event_find(const struct cpu_events *cpu, const char *name);

/* Compares names like strcmp(3), but ignores case and treats ':' as '.'. */
int name_order(const char *a, const char *b);
/* A character of a name, in the form in which name_order() compares it. */
unsigned char name_letter(char letter);

/* The names closest to an unknown one, as by nearest_print(), of perf's own names, and the names and aliases
 * of `cpu`, which may be NULL. */
int nearest_names(const struct cpu_events *cpu, const char *name, int most, char *text, size_t size);
