/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The core's neighbours: PMUs of packages (uncore, power, cstate_pkg), of cores (cstate_core), and
 * registers that count by themselves (msr). Where several CPUs share a counter, the driver names one
 * that counts for all (sysfs, cpumask); it counts what happens to the part, whoever caused it.
 */
#ifndef NHMTAP_NEIGHBOURS_H
#define NHMTAP_NEIGHBOURS_H

#include "event/event.h"
#include "host/host.h"
#include "plan/target.h"
#include "refusal.h"

struct neighbour {
	const char *scope; /* what has one such counter: "socket", "core", "cpu", or "shared": several CPUs */
	const char *words; /* the same as a sentence */
};

/* How far an event's counter reaches; NULL: it is the core's, or the kernel's own. */
const struct neighbour *neighbour_of(const struct event *event, const struct host *host);

/* Refuses shared counters where they could not count what they are asked for: for processes and
 * cgroups, for CPUs of which none counts for the others, in groups with other PMUs' events, and for
 * samples. Returns 0, or -1 with the refusal. */
int neighbours_check(const struct events *events, const struct target *target, const struct host *host,
		     struct refusal *refusal);

#endif
