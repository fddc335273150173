/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of counters for which Linux has no driver. They are counted by writing model-specific registers. */
#pragma once

#include "base/refusal.h"
#include "event/event.h"
#include "option/options.h"

/* Refuses events for which units_place() has found no counter. Returns 0, or -1 with the refusal. */
int units_fit(const struct events *events, struct refusal *refusal);

/* The same; without --msr refuses all such events. */
int units_check(const struct events *events, const struct options *options, struct refusal *refusal);
