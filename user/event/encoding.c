// SPDX-License-Identifier: GPL-2.0-only
#include "event/encoding.h"

/* intel_perfmon_event_map, with the entries that intel_pmu_init() sets for Nehalem. */
static const __u64 generic_codes[] = {
	[PERF_COUNT_HW_CPU_CYCLES] = 0x003c,
	[PERF_COUNT_HW_INSTRUCTIONS] = 0x00c0,
	[PERF_COUNT_HW_CACHE_REFERENCES] = 0x4f2e,
	[PERF_COUNT_HW_CACHE_MISSES] = 0x412e,
	[PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = 0x00c4,
	[PERF_COUNT_HW_BRANCH_MISSES] = 0x00c5,
	[PERF_COUNT_HW_STALLED_CYCLES_FRONTEND] = 0x180010e,
	[PERF_COUNT_HW_STALLED_CYCLES_BACKEND] = 0x1803fb1,
	[PERF_COUNT_HW_REF_CPU_CYCLES] = 0x0300,
};

bool core_config(const struct event *event, struct host *host, __u64 *config)
{
	const struct pmu *pmu = host_core_pmu(host);
	const struct perf_event_attr *attr = &event->attr;

	*config = attr->config;
	if (attr->type == PERF_TYPE_RAW || (pmu && attr->type == pmu->type))
		return true;
	if (attr->type != PERF_TYPE_HARDWARE ||
	    attr->config >= sizeof(generic_codes) / sizeof(generic_codes[0]))
		return false;
	*config = generic_codes[attr->config];
	return *config;
}
