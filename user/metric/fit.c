// SPDX-License-Identifier: GPL-2.0-only
#include "metric/fit.h"

#include "event/encoding.h"
#include "event/placement.h"
#include "host/kernel.h"

/* The least number of counters of CPUs without a table. (Core 2 had two, but is no longer in use.) */
#define UNKNOWN_CPU_COUNTERS 4

/* The fixed counter of cycles, to which the NMI watchdog's event is pinned (kernel/watchdog_hld.c). */
#define WATCHDOG (1ULL << (PLACED_FIXED + 1))

static size_t hardware_events(const struct events *events)
{
	size_t nr = 0;

	for (size_t i = 0; i < events->nr; i++)
		nr += events->list[i].attr.type != PERF_TYPE_SOFTWARE;
	return nr;
}

/* Whether the events need no more values of any extra register than the core can hold at the same time. */
static bool extra_registers_agree(const struct events *events, struct host *host)
{
	struct {
		size_t nr;
		__u64 values[EXTRA_VALUES];
	} registers[EXTRA_REGISTERS] = {0};

	for (size_t i = 0; i < events->nr; i++) {
		struct encoding encoding;
		enum extra_register extra;
		size_t v = 0;

		if (!encoding_of(&events->list[i].attr, host, &encoding))
			continue;
		extra = extra_register_of(host->events, encoding.config);
		if (extra == EXTRA_NONE)
			continue;
		while (v < registers[extra].nr && registers[extra].values[v] != encoding.config1)
			v++;
		if (v == extra_registers_of(host->events, extra))
			return false;
		if (v == registers[extra].nr)
			registers[extra].values[registers[extra].nr++] = encoding.config1;
	}
	return true;
}

bool events_fit(const struct events *events, struct host *host)
{
	int counters[PLACEMENT_MOST];

	if (!host->events)
		return hardware_events(events) <= UNKNOWN_CPU_COUNTERS;
	return events->nr <= PLACEMENT_MOST && extra_registers_agree(events, host) &&
	       placement_find(host, events->list, events->nr, counters_missing(host), counters) < 0;
}

unsigned long long counters_held(const struct host *host)
{
	return kernel_nmi_watchdog(host) ? WATCHDOG : 0;
}

unsigned long long counters_missing(const struct host *host)
{
	return counters_held(host) | host->counters_ahead;
}
