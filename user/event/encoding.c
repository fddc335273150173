// SPDX-License-Identifier: GPL-2.0-only
#include "event/encoding.h"

#include <stdio.h>
#include <string.h>

/* The driver shows in sysfs how it encodes perf's generic hardware events on this machine, with the errata of
 * this very CPU taken into account: events_sysfs_show(), arch/x86/events/core.c. */
static bool named_by_driver(struct host *host, const struct generic_event *generic, struct encoding *encoding)
{
	const struct pmu *pmu = host_core_pmu(host);
	struct events parsed = {0};
	struct refusal refusal;
	char text[160];

	for (size_t i = 0; pmu && i < pmu->nr_aliases; i++) {
		const char *name = pmu->aliases[i].name;

		if (strcmp(name, generic->name) && (!generic->alias || strcmp(name, generic->alias)))
			continue;
		snprintf(text, sizeof(text), "%s/%s/", pmu->name, name);
		if (events_parse(text, host, &parsed, &refusal))
			break;
		*encoding = (struct encoding){.config = parsed.list[0].attr.config,
					      .config1 = parsed.list[0].attr.config1};
		snprintf(encoding->source, sizeof(encoding->source), "the driver: %s/events/%s in sysfs",
			 pmu->name, name);
		events_release(&parsed);
		return true;
	}
	events_release(&parsed);
	return false;
}

static bool is_generic(const struct perf_event_attr *attr, const struct known_generic *row)
{
	const struct generic_event *event = generic_event_find(row->name);
	__u64 config;

	if (attr->type == PERF_TYPE_HARDWARE)
		return event && event->type == attr->type && event->config == attr->config;
	return !event && !cache_event_find(row->name, &config) && config == attr->config;
}

static bool named_by_table(const struct cpu_events *cpu, const struct perf_event_attr *attr,
			   struct encoding *encoding)
{
	for (size_t i = 0; cpu->kernel && i < cpu->kernel->nr_generic; i++) {
		const struct known_generic *row = &cpu->kernel->generic[i];

		if (!is_generic(attr, row))
			continue;
		*encoding = (struct encoding){row->config, row->config1, row->note, ""};
		snprintf(encoding->source, sizeof(encoding->source), "%.191s", cpu->kernel->source);
		return true;
	}
	return false;
}

bool encoding_of(const struct perf_event_attr *attr, struct host *host, struct encoding *encoding)
{
	const struct generic_event *generic = generic_event_of(attr->type, attr->config);

	if (attr->type == PERF_TYPE_RAW) {
		*encoding = (struct encoding){attr->config, attr->config1, NULL, "the event's own"};
		return true;
	}
	if (attr->type == PERF_TYPE_HARDWARE && generic && named_by_driver(host, generic, encoding))
		return true;
	return (attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE) &&
	       named_by_table(host->events, attr, encoding);
}

bool counts_the_same(const struct perf_event_attr *one, const struct perf_event_attr *other,
		     struct host *host)
{
	struct encoding has, wanted;

	if (one->exclude_user != other->exclude_user || one->exclude_kernel != other->exclude_kernel ||
	    one->exclude_host != other->exclude_host)
		return false;
	if (host->events && encoding_of(one, host, &has) && encoding_of(other, host, &wanted))
		return has.config == wanted.config && has.config1 == wanted.config1;
	return one->type == other->type && one->config == other->config && one->config1 == other->config1 &&
	       one->config2 == other->config2;
}

unsigned int general_counters_of(const struct host *host)
{
	const struct cpu_events *cpu = host->events;
	bool shared = cpu->general_counters_smt && host_two_threads(host);

	return shared ? cpu->general_counters_smt : cpu->general_counters;
}

bool microcode_keeps_pebs_off(const struct host *host, __u32 *needed)
{
	const struct known_kernel *kernel = host->events ? host->events->kernel : NULL;

	*needed = 0;
	if (!kernel || !kernel->nr_microcode)
		return false;
	for (size_t i = 0; i < kernel->nr_microcode; i++)
		if (kernel->microcode[i].model == host->cpu.model &&
		    kernel->microcode[i].stepping == host->cpu.stepping)
			*needed = kernel->microcode[i].revision;
	return !*needed || host->cpu.microcode < *needed;
}

const struct offcore_register *offcore_register_of(const struct cpu_events *cpu, __u64 config)
{
	const struct known_offcore *offcore = cpu->offcore;

	for (size_t i = 0; offcore && i < offcore->nr_registers; i++)
		if ((config & CONFIG_SELECT) == (offcore->registers[i].config & CONFIG_SELECT))
			return &offcore->registers[i];
	return NULL;
}

enum extra_register extra_register_of(const struct cpu_events *cpu, __u64 config)
{
	if (is_load_latency(cpu, config))
		return EXTRA_LOAD_LATENCY;
	return offcore_register_of(cpu, config) ? EXTRA_OFFCORE : EXTRA_NONE;
}

size_t extra_registers_of(const struct cpu_events *cpu, enum extra_register extra)
{
	return extra == EXTRA_OFFCORE && cpu->offcore && cpu->offcore->nr_registers > 1 ? EXTRA_VALUES : 1;
}

bool has_fixed_counter(const struct cpu_events *cpu, const struct kernel_rule *rule)
{
	return rule->fixed_counter >= 0 && (__u32)rule->fixed_counter < cpu->fixed_counters;
}

bool event_missing(const struct host *host, const struct known_event *event)
{
	return event->architectural >= 0 && host->events_missing >> event->architectural & 1;
}

int generic_missing(struct host *host, const struct generic_event *event)
{
	struct encoding encoding;

	if (event->architectural < 0 || !(host->events_missing >> event->architectural & 1))
		return -1;
	return named_by_driver(host, event, &encoding) ? -1 : event->architectural;
}

const struct kernel_rule *kernel_rule_of(const struct kernel_rule *rules, size_t nr, __u64 config)
{
	for (size_t i = 0; i < nr; i++)
		if ((config & rules[i].mask) == rules[i].config)
			return &rules[i];
	return NULL;
}
