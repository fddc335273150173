/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of counters that Linux has no driver for, which are counted by writing model-specific registers. */
#ifndef NHMTAP_PLAN_UNITS_H
#define NHMTAP_PLAN_UNITS_H

#include "event/event.h"
#include "option/options.h"
#include "refusal.h"

/* Refuses those that units_place() has found no counter for. Returns 0, or -1 with the refusal. */
int units_fit(const struct events *events, struct refusal *refusal);

/* Likewise, and all of them without --msr. */
int units_check(const struct events *events, const struct options *options, struct refusal *refusal);

#endif
