// SPDX-License-Identifier: GPL-2.0-only
#include "metric/fit.h"

#include "event/placement.h"
#include "host/kernel.h"

/* What CPUs without a table have at the least, since Core 2's two are long gone. */
#define UNKNOWN_CPU_COUNTERS 4

/* The counter of cycles: the NMI watchdog's event is pinned there (kernel/watchdog_hld.c). */
#define WATCHDOG (1ULL << (PLACED_FIXED + 1))

static size_t hardware_events(const struct events *events)
{
	size_t nr = 0;

	for (size_t i = 0; i < events->nr; i++)
		nr += events->list[i].attr.type != PERF_TYPE_SOFTWARE;
	return nr;
}

/* Extra registers, for off-core responses and the latency of loads, hold one value at a time. */
static bool extra_registers_agree(const struct events *events)
{
	__u64 value = 0;

	for (size_t i = 0; i < events->nr; i++) {
		__u64 wanted = events->list[i].attr.config1;

		if (wanted && value && wanted != value)
			return false;
		value |= wanted;
	}
	return true;
}

bool events_fit(const struct events *events, struct host *host)
{
	int counters[PLACEMENT_MOST];

	if (!host->events)
		return hardware_events(events) <= UNKNOWN_CPU_COUNTERS;
	return events->nr <= PLACEMENT_MOST && extra_registers_agree(events) &&
	       placement_find(host, events->list, events->nr, counters_held(host), counters) < 0;
}

unsigned long long counters_held(struct host *host)
{
	return kernel_nmi_watchdog(host) ? WATCHDOG : 0;
}
