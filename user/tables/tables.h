/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables of CPUs from a folder, read while the program runs: laid out as events/ is, in the same
 * form, and merged with the tables that are built in. What comes out is the same struct cpu_events.
 *
 * DIR/CPU/TOPIC.json adds to a CPU that is built in; an entry of the same name replaces one of its.
 * A row in DIR/cpus.json defines a CPU anew: from nothing, or with "inherits" from another one.
 * DIR/generic/metrics.json adds metrics over perf's own events. DIR/sources.json adds sources.
 */
#ifndef NHMTAP_TABLES_H
#define NHMTAP_TABLES_H

#include "tables/known_event.h"
#include "refusal.h"

struct tables {
	struct cpu_events *cpus; /* those that the folder defines or adds to */
	size_t nr_cpus;
	const struct known_metric *metrics; /* over perf's own events: the folder's and those built in */
	size_t nr_metrics;
	struct loader *loader; /* what these point into */
};

/* Reads the folder. Returns 0, or -1 with the refusal, which names file, entry and field of the first
 * fault. The tables own what they hold up to tables_release(), which may also be called on zeroed ones
 * and after a refusal. */
int tables_load(struct tables *tables, const char *folder, struct refusal *refusal);
void tables_release(struct tables *tables);

#endif
