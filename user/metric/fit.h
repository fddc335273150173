/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether the core has a counter for each of these events at once, by the rules of its tables. */
#ifndef NHMTAP_FIT_H
#define NHMTAP_FIT_H

#include "event/event.h"
#include "host/host.h"

/* Errs on the side of no: where nothing is known of a CPU, four hardware events are the most. */
bool events_fit(const struct events *events, struct host *host);

/* Counters that the kernel keeps for itself, as placement_find() has them: the NMI watchdog's. */
unsigned long long counters_held(struct host *host);

#endif
