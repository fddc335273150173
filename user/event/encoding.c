// SPDX-License-Identifier: GPL-2.0-only
#include "event/encoding.h"

#include "event/names.h"

static bool is_generic(const struct perf_event_attr *attr, const struct known_generic *row)
{
	const struct generic_event *event = generic_event_find(row->name);
	__u64 config;

	if (attr->type == PERF_TYPE_HARDWARE)
		return event && event->type == attr->type && event->config == attr->config;
	return !event && !cache_event_find(row->name, &config) && config == attr->config;
}

bool encoding_of(const struct perf_event_attr *attr, const struct cpu_events *cpu,
		 struct encoding *encoding)
{
	if (attr->type == PERF_TYPE_RAW) {
		*encoding = (struct encoding){attr->config, attr->config1, NULL};
		return true;
	}
	if (attr->type != PERF_TYPE_HARDWARE && attr->type != PERF_TYPE_HW_CACHE)
		return false;
	for (size_t i = 0; cpu->kernel && i < cpu->kernel->nr_generic; i++) {
		const struct known_generic *row = &cpu->kernel->generic[i];

		if (!is_generic(attr, row))
			continue;
		*encoding = (struct encoding){row->config, row->config1, row->note};
		return true;
	}
	return false;
}

bool core_config(const struct event *event, struct host *host, __u64 *config)
{
	const struct pmu *pmu = host_core_pmu(host);
	const struct perf_event_attr *attr = &event->attr;
	struct encoding encoding;

	*config = attr->config;
	if (attr->type == PERF_TYPE_RAW || (pmu && attr->type == pmu->type))
		return true;
	if (attr->type != PERF_TYPE_HARDWARE || !host->events ||
	    !encoding_of(attr, host->events, &encoding))
		return false;
	*config = encoding.config;
	return true;
}
