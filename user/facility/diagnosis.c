// SPDX-License-Identifier: GPL-2.0-only
#include "facility/diagnosis.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "host/files.h"
#include "host/kernel.h"
#include "plan/denial.h"
#include "record/record.h"

static json_t *text(const char *value)
{
	return value_text(value, strlen(value));
}

static json_t *number_value(__u64 value)
{
	return json_integer(value);
}

/* Adds the reason and the remedy of a refusal. */
static void put_refusal(json_t *record, const struct refusal *refusal)
{
	if (refusal->asked[0])
		json_object_set_new(record, "asked", text(refusal->asked));
	json_object_set_new(record, "why", text(refusal->why));
	if (refusal->remedy[0])
		json_object_set_new(record, "remedy", text(refusal->remedy));
	if (refusal->source[0])
		json_object_set_new(record, "source", text(refusal->source));
	if (refusal->error)
		json_object_set_new(record, "errno", json_string(error_name(refusal->error)));
}

/* --- the processor ---------------------------------------------------------------------------- */

static json_t *signature_value(const struct signature *signature)
{
	json_t *value = json_object();

	json_object_set_new(value, "eax", value_hex(signature->value));
	json_object_set_new(value, "extended_family", number_value(signature->extended_family));
	json_object_set_new(value, "extended_model", number_value(signature->extended_model));
	json_object_set_new(value, "type", number_value(signature->type));
	json_object_set_new(value, "family", number_value(signature->family));
	json_object_set_new(value, "model", number_value(signature->model));
	json_object_set_new(value, "stepping", number_value(signature->stepping));
	return value;
}

static json_t *perfmon_value(const struct perfmon *perfmon)
{
	json_t *value = json_object(), *events = json_object();

	json_object_set_new(value, "version", number_value(perfmon->version));
	json_object_set_new(value, "general_counters", number_value(perfmon->general_counters));
	json_object_set_new(value, "general_width", number_value(perfmon->general_width));
	json_object_set_new(value, "events_length", number_value(perfmon->events));
	for (__u32 i = 0; i < perfmon->events && i < PERFMON_EVENTS; i++)
		json_object_set_new(events, perfmon_event_names[i],
				    json_boolean(!(perfmon->events_missing >> i & 1)));
	json_object_set_new(value, "events", events);
	json_object_set_new(value, "fixed_counters", number_value(perfmon->fixed_counters));
	json_object_set_new(value, "fixed_width", number_value(perfmon->fixed_width));
	return value;
}

static json_t *register_value(const struct msr *msr, struct host *host)
{
	json_t *value = json_object(), *fields = json_object();
	struct refusal refusal;

	json_object_set_new(value, "name", json_string(msr->name));
	json_object_set_new(value, "address", value_hex(msr->address));
	if (msr->error) {
		msr_denied(&refusal, host, msr);
		refusal.asked[0] = '\0'; /* the finding's name says it already */
		put_refusal(value, &refusal);
		json_decref(fields);
		return value;
	}
	json_object_set_new(value, "value", value_hex(msr->value));
	for (int i = 0; i < msr->nr_fields; i++)
		json_object_set_new(fields, msr->fields[i].name,
				    number_value(msr_field_value(msr, &msr->fields[i])));
	json_object_set_new(value, "fields", fields);
	return value;
}

static json_t *features_value(const struct processor *processor)
{
	return json_pack("{s:b, s:b, s:b, s:b}", "debug_store", (int)CPUID_DS(processor->basic),
			 "debug_store_64", (int)CPUID_DTES64(processor->basic), "perf_capabilities",
			 (int)CPUID_PDCM(processor->basic), "hypervisor",
			 (int)CPUID_HYPERVISOR(processor->basic));
}

json_t *processor_record(const struct processor *processor, struct host *host)
{
	json_t *record = json_pack("{s:s}", "type", "processor"), *registers = json_array();

	if (processor->cpuid) {
		json_object_set_new(record, "signature", signature_value(&processor->signature));
		json_object_set_new(record, "features", features_value(processor));
	}
	if (processor->architectural)
		json_object_set_new(record, "perfmon", perfmon_value(&processor->perfmon));
	if (processor->hypervisor[0])
		json_object_set_new(record, "hypervisor", text(processor->hypervisor));
	for (int i = 0; i < NR_MSRS; i++)
		json_array_append_new(registers, register_value(&processor->msrs[i], host));
	json_object_set_new(record, "registers", registers);
	return record;
}

/* --- the kernel ------------------------------------------------------------------------------- */

static const char *const options[] = {
	"CONFIG_PERF_EVENTS",
	"CONFIG_CGROUP_PERF",
	"CONFIG_BPF_SYSCALL",
	"CONFIG_BPF_JIT",
	"CONFIG_DEBUG_INFO_BTF",
	"CONFIG_PERF_EVENTS_INTEL_UNCORE",
	"CONFIG_PERF_EVENTS_INTEL_CSTATE",
	"CONFIG_PERF_EVENTS_INTEL_RAPL",
	"CONFIG_X86_MSR",
	"CONFIG_HARDLOCKUP_DETECTOR_PERF",
};

static json_t *config_value(struct host *host)
{
	json_t *value = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		char built[2] = {kernel_config(host, options[i])};

		if (built[0])
			json_object_set_new(value, options[i], json_string(built));
	}
	return value;
}

static const char *const settings[] = {
	"perf_event_paranoid",
	"perf_event_max_sample_rate",
	"perf_cpu_time_max_percent",
	"perf_event_mlock_kb",
	"nmi_watchdog",
	"unprivileged_bpf_disabled",
	"kptr_restrict",
};

static json_t *settings_value(const struct host *host)
{
	json_t *value = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		char path[128];
		long setting;

		snprintf(path, sizeof(path), "/proc/sys/kernel/%s", settings[i]);
		setting = slurp_number(host, path, LONG_MIN);
		if (setting != LONG_MIN)
			json_object_set_new(value, settings[i], json_integer(setting));
	}
	return value;
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static json_t *pmus_value(const struct host *host)
{
	json_t *value = json_array();
	struct dirent **names;
	char path[PATH_MAX];
	int nr;

	snprintf(path, sizeof(path), "%s/sys/bus/event_source/devices", host->root);
	nr = scandir(path, &names, not_hidden, alphasort);
	for (int i = 0; i < nr; i++) {
		if (i < 64) /* a record's length is limited, and servers have dozens of uncore PMUs */
			json_array_append_new(value, text(names[i]->d_name));
		free(names[i]);
	}
	if (nr >= 0)
		free(names);
	return value;
}

json_t *kernel_record(struct host *host)
{
	json_t *record = json_pack("{s:s}", "type", "kernel");
	char meltdown[128];

	json_object_set_new(record, "release", text(host->release));
	json_object_set_new(record, "btf", json_boolean(host->btf));
	json_object_set_new(record, "page_table_isolation", json_boolean(kernel_pti(host)));
	if (slurp(host, meltdown, sizeof(meltdown), "/sys/devices/system/cpu/vulnerabilities/meltdown") > 0)
		json_object_set_new(record, "meltdown", text(meltdown));
	json_object_set_new(record, "settings", settings_value(host));
	json_object_set_new(record, "config", config_value(host));
	json_object_set_new(record, "pmus", pmus_value(host));
	return record;
}

/* --- what may be done, and what works --------------------------------------------------------- */

json_t *permission_record(const struct permission *permission)
{
	json_t *record = json_pack("{s:s, s:s}", "type", "permission", "name", permission->name);

	json_object_set_new(record, "value",
			    permission->kind == PERMISSION_NUMBER ? json_integer(permission->number)
								  : json_string(permission->word));
	json_object_set_new(record, "ok", json_boolean(permission->ok));
	if (!permission->ok)
		put_refusal(record, &permission->refusal);
	return record;
}

json_t *counters_record(const struct free_counters *counters, const struct processor *processor,
			struct host *host)
{
	json_t *record =
		json_pack("{s:s, s:i, s:i, s:b}", "type", "counters", "general_free", counters->general,
			  "fixed_free", counters->fixed, "nmi_watchdog", (int)kernel_nmi_watchdog(host));

	if (processor->architectural) {
		json_object_set_new(record, "general", number_value(processor->perfmon.general_counters));
		json_object_set_new(record, "fixed", number_value(processor->perfmon.fixed_counters));
	}
	if (counters->refusal.asked[0])
		put_refusal(record, &counters->refusal);
	return record;
}

json_t *facility_record(const struct finding *finding)
{
	const struct facility *facility = finding->facility;
	const struct found *found = &finding->found;
	json_t *record = json_pack("{s:s, s:s, s:s}", "type", "facility", "name", facility->name, "title",
				   facility->title);

	if (finding->guide)
		json_object_set_new(record, "guide", json_string(finding->guide));
	json_object_set_new(record, "works", json_boolean(finding->works));
	if (found->event[0]) {
		json_object_set_new(record, "event", text(found->event));
		json_object_set_new(record, "opened", json_boolean(found->opened));
	}
	if (found->counted) {
		json_object_set_new(record, "value", json_integer(found->count.value));
		json_object_set_new(record, "enabled_ns", json_integer(found->count.enabled_ns));
		json_object_set_new(record, "running_ns", json_integer(found->count.running_ns));
	}
	if (found->sampled)
		json_object_set_new(record, "samples_arrived", json_integer(found->samples));
	if (!finding->works)
		put_refusal(record, &finding->refusal);
	return record;
}
