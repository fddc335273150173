/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PMUs outside of the core: of packages (uncore, power, cstate_pkg), of cores (cstate_core), and registers
 * that count on their own (msr). Where several CPUs share a counter, the driver's cpumask in sysfs names the
 * CPU that counts for all of them. Such a counter counts what happens in its part of the machine, whichever
 * process caused it.
 */
#pragma once

#include "base/refusal.h"
#include "event/event.h"
#include "host/host.h"
#include "plan/target.h"

struct neighbour {
	const char *scope; /* which part has one: "socket", "core", "cpu"; "shared": several CPUs */
	const char *words; /* the same in words */
};

/* Which part of the machine the event's counter covers; NULL if it is the core's PMU, or the kernel's own
 * event. */
const struct neighbour *neighbour_of(const struct event *event, const struct host *host);

/* Refuses shared counters for which they are not suited: processes, cgroups, CPUs of which none counts for
 * the others, groups with events of other PMUs, and samples. Returns 0, or -1 with the refusal. */
int neighbours_check(const struct events *events, const struct target *target, const struct host *host,
		     struct refusal *refusal);
