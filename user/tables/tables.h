/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables of CPUs from a folder, read at run time. The folder has the layout and the format of events/, and is
 * merged with the built-in tables. The result is the same struct cpu_events.
 *
 * DIR/CPU/TOPIC.json adds to a built-in CPU; an entry replaces a built-in one of the same name. A row in
 * DIR/cpus.json defines a new CPU: from scratch, or on the basis of another one ("inherits").
 * DIR/generic/metrics.json adds metrics over perf's own events. DIR/sources.json adds sources.
 */
#pragma once

#include "base/refusal.h"
#include "tables/known_event.h"

struct tables {
	struct cpu_events *cpus; /* the CPUs that the folder defines or adds to */
	size_t nr_cpus;
	const struct known_metric *metrics; /* over perf's own events: the folder's and the built-in ones */
	size_t nr_metrics;
	struct loader *loader; /* owns the memory to which these point */
};

/* Reads the folder. The tables own their contents up to tables_release(), which may also be called on a
 * zeroed struct and after a refusal. Returns 0, or -1 with the refusal, which names the file, entry and field
 * of the first fault. */
int tables_load(struct tables *tables, const char *folder, struct refusal *refusal);
void tables_release(struct tables *tables);
