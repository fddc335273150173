// SPDX-License-Identifier: GPL-2.0-only
#include "activity/start.h"

#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "host/privileges.h"
#include "plan/neighbours.h"
#include "plan/permission.h"
#include "record/record.h"
#include "record/type.h"

/* The most bytes of a command line in the record: it may have megabytes. */
#define ARGUMENTS_MAX 1024

/* --- an event --------------------------------------------------------------------------------- */

static const char *type_name(__u32 type)
{
	static const char *const names[] = {
		[PERF_TYPE_HARDWARE] = "PERF_TYPE_HARDWARE",
		[PERF_TYPE_SOFTWARE] = "PERF_TYPE_SOFTWARE",
		[PERF_TYPE_HW_CACHE] = "PERF_TYPE_HW_CACHE",
		[PERF_TYPE_RAW] = "PERF_TYPE_RAW",
	};

	return type < ARRAY_SIZE(names) ? names[type] : NULL;
}

/* What is true of each event of its kind is not worth a line on stderr, as event->note is. */
static void put_note(json_t *value, const struct event *event)
{
	static const char several[] = "several may occur at once, so a PEBS record may take more than one, "
				      "and nothing tells how many: its "
				      "count, periods and distance are what there is at least";
	char note[sizeof(event->note) + sizeof(several) + 2];

	snprintf(note, sizeof(note), "%s%s%s", event->note, event->note[0] && event->at_least ? "; " : "",
		 event->at_least ? several : "");
	if (note[0])
		json_object_set_new(value, "note", value_text(note, sizeof(note)));
}

/* Adds the members of perf_event_attr; most only if not zero. Encodings are in hex. */
static void put_attr(json_t *value, const struct perf_event_attr *attr)
{
	json_object_set_new(value, "type", json_integer(attr->type));
	json_object_set_new(value, "config", value_hex(attr->config));
	if (attr->config1)
		json_object_set_new(value, "config1", value_hex(attr->config1));
	if (attr->config2)
		json_object_set_new(value, "config2", value_hex(attr->config2));
	if (attr->sample_period) /* a union with the frequency, if freq is set */
		json_object_set_new(value, attr->freq ? "sample_freq" : "sample_period",
				    json_integer(attr->sample_period));
	if (attr->sample_type)
		json_object_set_new(value, "sample_type", value_hex(attr->sample_type));
	if (attr->branch_sample_type)
		json_object_set_new(value, "branch_sample_type", value_hex(attr->branch_sample_type));
	json_object_set_new(value, "read_format", value_hex(attr->read_format));
#define FIELD(name)                                                                                          \
	if (attr->name)                                                                                      \
		json_object_set_new(value, #name, json_integer(attr->name));
	FIELD(sample_max_stack)
	FIELD(exclude_callchain_kernel)
	FIELD(exclude_callchain_user)
	FIELD(precise_ip)
	FIELD(disabled)
	FIELD(inherit)
	FIELD(pinned)
	FIELD(exclusive)
	FIELD(exclude_user)
	FIELD(exclude_kernel)
	FIELD(exclude_hv)
	FIELD(exclude_idle)
	FIELD(exclude_host)
	FIELD(exclude_guest)
	FIELD(freq)
	FIELD(enable_on_exec)
	FIELD(watermark)
	FIELD(wakeup_events)
	FIELD(aux_watermark)
#undef FIELD
}

json_t *event_value(const struct event *event, const struct host *host)
{
	json_t *value = json_object(), *attr = json_object();
	const char *type = type_name(event->attr.type);
	const struct neighbour *neighbour = neighbour_of(event, host);
	char cpus[256];

	json_object_set_new(value, "name", value_text(event->name, sizeof(event->name)));
	if (event->description[0])
		json_object_set_new(value, "description",
				    value_text(event->description, sizeof(event->description)));
	if (event->listed) {
		json_object_set_new(value, "source", json_string(host->pmu_events.source));
		json_object_set_new(value, "curated", json_false());
	}
	if (event->msr)
		json_object_set_new(value, "source", json_string("msr"));
	put_note(value, event);
	if (event->never[0])
		json_object_set_new(value, "not_counted", value_text(event->never, sizeof(event->never)));
	if (event->unit[0])
		json_object_set_new(value, "unit", value_text(event->unit, sizeof(event->unit)));
	if (event->group >= 0)
		json_object_set_new(value, "group", json_integer(event->group));
	if (event->counter[0])
		json_object_set_new(value, "counter", json_string(event->counter));
	if (neighbour)
		json_object_set_new(value, "scope", json_string(neighbour->scope));
	if (neighbour)
		json_object_set_new(value, "scope_why", json_string(neighbour->words));
	if (event->cpus)
		json_object_set_new(value, "cpus", json_string(cpus_print(event->cpus, cpus, sizeof(cpus))));
	if (event_distance(event))
		json_object_set_new(value, "sample_distance", json_integer(event_distance(event)));
	if (type)
		json_object_set_new(value, "type", json_string(type));
	put_attr(attr, &event->attr);
	json_object_set_new(value, "attr", attr);
	return value;
}

/* --- the rest --------------------------------------------------------------------------------- */

static json_t *units_value(const struct cpu_events *cpu)
{
	json_t *value = json_array();

	for (size_t i = 0; i < cpu->nr_units; i++)
		json_array_append_new(value, json_string(cpu->units[i].name));
	return value;
}

json_t *emulated_value(const struct host *host)
{
	const struct emulated *emulated = &host->emulated;

	if (!emulated->model[0] || host->pretended)
		return NULL;
	return json_pack("{s:o, s:o}", "model", value_text(emulated->model, sizeof(emulated->model)),
			 "version", value_text(emulated->version, sizeof(emulated->version)));
}

/* Describes the CPU and the kernel. */
static json_t *host_value(const struct host *host)
{
	json_t *cpu = json_object(), *value = json_object();

	json_object_set_new(cpu, "vendor", value_text(host->cpu.vendor, sizeof(host->cpu.vendor)));
	json_object_set_new(cpu, "family", json_integer(host->cpu.family));
	json_object_set_new(cpu, "model", json_integer(host->cpu.model));
	json_object_set_new(cpu, "stepping", json_integer(host->cpu.stepping));
	json_object_set_new(cpu, "model_name",
			    value_text(host->cpu.model_name, sizeof(host->cpu.model_name)));
	if (host->events)
		json_object_set_new(cpu, "events", json_string(host->events->name));
	if (host->units)
		json_object_set_new(cpu, "units", units_value(host->units));
	json_object_set_new(value, "cpu", cpu);
	json_object_set_new(value, "emulated", emulated_value(host));
	json_object_set_new(value, "cpus_online", json_integer(cpus_count(&host->online)));
	json_object_set_new(value, "kernel", value_text(host->release, sizeof(host->release)));
	if (host->boot_id[0])
		json_object_set_new(value, "boot_id", value_text(host->boot_id, sizeof(host->boot_id)));
	return value;
}

/* Describes the source of the records by OpenTelemetry's names. */
static json_t *resource_value(const struct host *host)
{
	json_t *value = json_object();

	json_object_set_new(value, "host.name", value_text(host->name, sizeof(host->name)));
	json_object_set_new(value, "host.arch",
			    json_string(strcmp(host->machine, "x86_64") ? host->machine : "amd64"));
	json_object_set_new(value, "os.type", json_string("linux"));
	if (host->emulated.model[0]) {
		json_object_set_new(value, "host.emulated.model",
				    value_text(host->emulated.model, sizeof(host->emulated.model)));
		json_object_set_new(value, "host.emulated.version",
				    value_text(host->emulated.version, sizeof(host->emulated.version)));
	}
	json_object_set_new(value, "process.pid", json_integer(getpid()));
	json_object_set_new(value, "process.executable.name", json_string("nhmtap"));
	if (host->container_id[0])
		json_object_set_new(value, "container.id", json_string(host->container_id));
	return value;
}

#define SHOWN_MOST 64

static json_t *ids_value(const pid_t *ids, size_t nr)
{
	json_t *list = json_array();

	for (size_t i = 0; i < nr && i < SHOWN_MOST; i++)
		json_array_append_new(list, json_integer(ids[i]));
	return list;
}

static json_t *cgroups_value(const struct target *target)
{
	json_t *list = json_array();

	for (size_t i = 0; i < target->nr_cgroups && i < SHOWN_MOST; i++)
		if (!target->cgroups[i].found)
			json_array_append_new(list, value_text(target->cgroups[i].name, 1024));
	for (size_t i = 0; i < target->nr_patterns && json_array_size(list) < SHOWN_MOST; i++)
		json_array_append_new(list, target->patterns[i].container
						    ? json_sprintf("container:%s", target->patterns[i].text)
						    : value_text(target->patterns[i].text, 1024));
	return list;
}

static json_t *target_value(const struct activity *activity)
{
	const struct target *target = &activity->plan.target;
	json_t *value = json_object();
	char cpus[256];

	if (target->command) {
		json_t *arguments = json_array();
		size_t left = ARGUMENTS_MAX;
		char **at = target->command;
		bool cut = false;

		for (; *at && left; at++) {
			size_t length = strnlen(*at, left);

			json_array_append_new(arguments, value_text(*at, length));
			cut = cut || (*at)[length];
			left -= length;
		}
		json_object_set_new(value, "process.command_args", arguments);
		if (*at || cut)
			json_object_set_new(value, "arguments_cut", json_true());
		json_object_set_new(value, "process.pid", json_integer(activity->session->child.pid));
	}
	if (target->nr_pids)
		json_object_set_new(value, "pids", ids_value(target->pids, target->nr_pids));
	if (target->nr_tids)
		json_object_set_new(value, "tids", ids_value(target->tids, target->nr_tids));
	if (target_in_cgroups(target))
		json_object_set_new(value, "cgroups", cgroups_value(target));
	if (target->cpus_given)
		json_object_set_new(value, "cpus",
				    json_string(cpus_print(&target->cpus, cpus, sizeof(cpus))));
	if (activity->counters && counters_unfollowed(activity->counters))
		json_object_set_new(value, "threads_unfollowed_max",
				    json_integer(counters_unfollowed(activity->counters)));
	return value;
}

static json_t *capabilities_value(const struct host *host)
{
	json_t *list = json_array();
	const char *name;

	for (size_t at = 0; (name = privileges_name(host->capabilities, &at));)
		json_array_append_new(list, json_string(name));
	return list;
}

/* The missing capabilities, by `doctor`'s judgement; it tells what each is needed for. NULL: none. */
static json_t *missing_value(struct host *host)
{
	struct permission permissions[NR_PERMISSIONS];
	json_t *list = NULL;

	permissions_judge(permissions, host);
	for (size_t i = 0; i < NR_PERMISSIONS; i++) {
		if (permissions[i].ok || strncmp(permissions[i].name, "CAP_", 4))
			continue;
		list = list ? list : json_array();
		json_array_append_new(list, json_string(permissions[i].name));
	}
	return list;
}

json_t *start_base(struct host *host, const char *command)
{
	json_t *missing = missing_value(host);

	json_t *record =
		json_pack("{s:s, s:s, s:s}", "type", "start", "version", NHMTAP_VERSION, "command", command);

	json_object_set_new(record, "resource", resource_value(host));
	json_object_set_new(record, "host", host_value(host));
	json_object_set_new(record, "capabilities", capabilities_value(host));
	if (missing)
		json_object_set_new(record, "capabilities_missing", missing);
	return record;
}

static json_t *share_value(const struct activity *activity)
{
	bool sampled = activity->ops->sampled_part;
	json_t *value =
		json_pack("{s:f, s:s}", "allowed", cpu_share_control(activity->session->cpu_share)->allowed,
			  "kept_by", sampled ? "period" : "nothing");

	if (!sampled)
		json_object_set_new(value, "why", json_string("it takes no samples that could be rarer"));
	return value;
}

static void put_limits(json_t *start, const struct activity *activity)
{
	const struct session *session = activity->session;
	json_t *limits;

	if (!session->limits.shared && !session->cpu_share)
		return;
	limits = session->limits.shared ? limits_value(&session->limits) : json_object();
	if (session->cpu_share)
		json_object_set_new(limits, "cpu_share", share_value(activity));
	json_object_set_new(start, "limits", limits);
}

void start_put_activity(json_t *start, struct activity *activity)
{
	const struct host *host = &activity->session->host;
	json_t *events = json_array();

	json_object_set_new(start, "target", target_value(activity));
	if (activity->options->interval_ms)
		json_object_set_new(start, "interval_ms", json_integer(activity->options->interval_ms));
	if (activity->options->delay_ms)
		json_object_set_new(start, "delay_ms", json_integer(activity->options->delay_ms));
	for (size_t i = 0; i < activity->plan.events.nr; i++)
		json_array_append_new(events, event_value(&activity->plan.events.list[i], host));
	if (activity->plan.default_why[0])
		json_object_set_new(
			start, "default_event_why",
			value_text(activity->plan.default_why, sizeof(activity->plan.default_why)));
	json_object_set_new(start, "events", events);
	put_limits(start, activity);
	if (activity->ops->describe)
		activity->ops->describe(activity, start);
}

static const struct record_type start_record = {.name = "start", .list = "events"};
REGISTER_RECORD(start_record);
