/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPUs that go offline in a run of whole CPUs, and come back: their events are closed and opened
 * again, and the stream says so, in records of their own and in those of the intervals that lack
 * them.
 */
#ifndef NHMTAP_HOTPLUG_H
#define NHMTAP_HOTPLUG_H

#include <stdbool.h>
#include <jansson.h>

#include "cpus.h"

struct run;

struct hotplug {
	int notices;          /* a socket on which the kernel tells of devices; -1: not to be had here */
	int online;           /* the list of CPUs that are; -1: CPUs are not what is measured */
	struct cpus missing;  /* CPUs of the target that are offline now */
	struct cpus missed;   /* those that were, at some time of this interval */
	struct cpus refused;  /* those that came back, and whose events could not be opened */
};

/* Begins to look, where whole CPUs are measured. */
void hotplug_begin(struct run *run);
void hotplug_end(struct run *run);

/* Brings the events in line with the CPUs that are online: when the kernel has a notice, which the run's
 * loop waits for. Returns 0 or -errno of the sink. */
int hotplug_follow(struct run *run);

/* The same before an interval is reported, where there may have been none. */
int hotplug_check(struct run *run, bool last);

/* The next interval begins. */
void hotplug_next(struct run *run);

#endif
