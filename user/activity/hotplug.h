/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPUs that go offline while an activity measures them, and come back: their events are closed and
 * opened again, and the stream says so, in records of their own and in those of the intervals that lack
 * them.
 */
#ifndef NHMTAP_HOTPLUG_H
#define NHMTAP_HOTPLUG_H

#include <stdbool.h>

#include "cpus.h"

struct activity;

struct hotplug {
	bool follows;	     /* whole CPUs are measured */
	struct cpus missing; /* CPUs of the target that are offline now */
	struct cpus missed;  /* those that were, at some time of this interval */
	bool any_missed;     /* there are some of those: it is asked for each record */
	struct cpus refused; /* those that came back, and whose events could not be opened */
};

/* Begins to follow notices, where whole CPUs are measured. */
void hotplug_begin(struct activity *activity);
void hotplug_end(struct activity *activity);

/* Before an interval is reported: looks for itself where there may have been no notice. */
void hotplug_check(struct activity *activity, bool last);

/* The next interval begins. */
void hotplug_next(struct activity *activity);

#endif
