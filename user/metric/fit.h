/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether the core has enough counters to count events at the same time, by the rules of its tables. */
#pragma once

#include "event/event.h"
#include "host/host.h"

/* Whether the events fit. If in doubt, they don't: on a CPU without a table, at most four hardware events
 * do. */
bool events_fit(const struct events *events, struct host *host);

/* The counters that the kernel uses itself, in placement_find()'s form of `taken`: the NMI watchdog's. */
unsigned long long counters_held(const struct host *host);

/* These, and those of the events that go before the planned ones: host->counters_ahead. */
unsigned long long counters_missing(const struct host *host);
