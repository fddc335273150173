/* SPDX-License-Identifier: GPL-2.0-only */
/* Events by name: perf's own names, and those of the tables in events/. */
#ifndef NHMTAP_TABLES_NAMES_H
#define NHMTAP_TABLES_NAMES_H

#include <linux/types.h>

#include "tables/known_event.h"

struct generic_event {
	const char *name;
	const char *alias; /* another spelling, or NULL */
	__u32 type;	   /* PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE */
	__u64 config;	   /* PERF_COUNT_… (perf_event.h) */
	const char *unit;  /* of the count, "" for a plain number */
	int architectural; /* the bit of CPUID.0AH:EBX with which it goes (intel_arch_events_map[],
			      arch/x86/events/intel/core.c), else -1 */
};

extern const struct generic_event generic_events[];
extern const size_t nr_generic_events;

/* perf's hardware and software events; NULL if it is none of them. */
const struct generic_event *generic_event_find(const char *name);

/* The one with this type and config; NULL if there is none. */
const struct generic_event *generic_event_of(__u32 type, __u64 config);

/* perf's cache events, "L1-dcache-load-misses": fills config of PERF_TYPE_HW_CACHE, returns 0; or
 * returns -1 if it is none. */
int cache_event_find(const char *name, __u64 *config);

/* An event of a CPU's table by its name or another spelling of it, without regard to case and with
 * ':' as good as '.'; NULL if not there. cpu may be NULL. */
const struct known_event *known_event_find(const struct cpu_events *cpu, const char *name);

/* Names are equal without regard to case and with ':' as good as '.'. Orders as strcmp(3) does. */
int name_order(const char *a, const char *b);
/* A character of a name as name_order() compares it. */
unsigned char name_letter(char letter);

/* The names closest to one that is not known: begun with it, offered candidates, then printed. */
#define NEAREST_MOST 8
struct nearest {
	const char *wanted;
	int most; /* how many to keep, up to NEAREST_MOST */
	struct {
		const char *name; /* the candidate's own string; NULL: none yet */
		int distance;
	} best[NEAREST_MOST];
};

void nearest_begin(struct nearest *nearest, const char *wanted, int most);
void nearest_offer(struct nearest *nearest, const char *candidate);
/* Writes them, closest first, ", " between them; returns how many. */
int nearest_print(const struct nearest *nearest, char *text, size_t size);

/* The same for events: perf's own names, and those and the aliases of cpu, which may be NULL. */
int nearest_names(const struct cpu_events *cpu, const char *name, int most, char *text, size_t size);

#endif
