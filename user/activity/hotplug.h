/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Follows CPUs that go offline while an activity measures them, and come back. Their events are closed and
 * opened again. This is reported in records of their own, and in the records of intervals that lack these
 * CPUs.
 */
#pragma once

#include <stdbool.h>

#include "base/cpus.h"

struct activity;

struct hotplug {
	bool follows;	     /* whole CPUs are measured */
	struct cpus missing; /* CPUs of the target that are offline now */
	struct cpus missed;  /* CPUs that were offline at some time of this interval */
	bool any_missed;     /* `missed` is not empty; kept because each record needs it */
	struct cpus refused; /* CPUs that came back, but whose events could not be opened */
};

/* Begins to follow notices if whole CPUs are measured. */
void hotplug_begin(struct activity *activity);
void hotplug_end(struct activity *activity);

/* Must be called before an interval is reported. Checks which CPUs are online if notices may be missing. */
void hotplug_check(struct activity *activity, bool last);

/* Must be called when the next interval begins. */
void hotplug_next(struct activity *activity);
