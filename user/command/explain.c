// SPDX-License-Identifier: GPL-2.0-only
/*
 * nhmtap explain EVENT…: what the kernel would be asked for, what it would write to which registers, and why.
 */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "command/host.h"
#include "option/command.h"
#include "event/registers.h"
#include "event/unit.h"
#include "output/output.h"
#include "plan/plan.h"
#include "record/record.h"
#include "activity/start.h"

/* What the parts of an event's record are made of. */
struct explained_subject {
	const struct event *event;
	const struct cpu_events *cpu;
	const struct host *host;
	struct encoding encoding;
	struct registers registers;
};

static json_t *string(const char *text)
{
	return value_text(text, strlen(text));
}

static void set(json_t *object, const char *name, json_t *value)
{
	json_object_set_new(object, name, value);
}

/* --- what counts ------------------------------------------------------------------------------ */

/* Whether the event that is counted is this row of the table. `any_latency`: the threshold (config1) is not
 * compared, for thresholds that have no row of their own. */
static bool is_row(const struct explained_subject *subject, const struct known_event *row, bool any_latency)
{
	if (row->config != subject->encoding.config)
		return false;
	return row->config1 == subject->encoding.config1 || any_latency;
}

/* The table's names of the event that is counted. Several rows may have the same encoding, for example where
 * only one of them can be sampled precisely. */
static json_t *names_of(const struct explained_subject *subject)
{
	const struct offcore_register *offcore = offcore_register_of(subject->cpu, subject->encoding.config);
	const struct cpu_events *cpu = subject->cpu;
	json_t *names = json_array();

	for (int any_latency = 0; any_latency < 2 && !json_array_size(names); any_latency++)
		for (size_t i = 0; i < cpu->nr_events; i++)
			if (is_row(subject, &cpu->events[i], any_latency) &&
			    !(any_latency && json_array_size(names)))
				json_array_append_new(names, string(cpu->events[i].name));
	if (offcore)
		json_array_append_new(names, string(offcore->name));
	return names;
}

static json_t *encoding_value(const struct explained_subject *subject)
{
	json_t *value = json_object();

	set(value, "config", value_hex(subject->encoding.config));
	if (subject->encoding.config1)
		set(value, "config1", value_hex(subject->encoding.config1));
	set(value, "names", names_of(subject));
	set(value, "source", string(subject->encoding.source));
	if (subject->encoding.note)
		set(value, "note", string(subject->encoding.note));
	return value;
}

/* --- where, and how precisely ----------------------------------------------------------------- */

static json_t *counters_value(const struct explained_subject *subject)
{
	const struct offcore_register *offcore = offcore_register_of(subject->cpu, subject->encoding.config);
	const struct known_event *known = subject->event->known;
	__u32 of_cpu = (1ULL << subject->cpu->general_counters) - 1;
	json_t *value = json_object();

	if (subject->registers.fixed_counter >= 0)
		set(value, "fixed", json_integer(subject->registers.fixed_counter));
	set(value, "general", value_bits(subject->registers.counters));
	set(value, "source", string(subject->cpu->kernel->source));
	if (known)
		set(value, "by_table", value_bits(known->counters & of_cpu));
	else if (offcore)
		set(value, "by_table", value_bits(offcore->counters));
	return value;
}

static json_t *precise_value(const struct explained_subject *subject)
{
	static const char *const by_table[] = {"never", "can", "only"};
	static const char *const means[] = {
		"not asked for: a sample's address is where the interrupt came, some instructions after the "
		"one that counted",
		"the processor writes a PEBS record when an instruction that counts ends: the address is "
		"that of the next instruction, the registers are those after it",
		"as precise_ip 1, and the kernel goes back to the instruction itself along the branches in "
		"the LBR; the sample is marked PERF_RECORD_MISC_EXACT_IP where it could",
	};
	const struct known_event *known = subject->event->known;
	unsigned int level = subject->event->attr.precise_ip;
	struct perf_event_attr precise = subject->event->attr;
	struct registers registers;
	json_t *value = json_object();

	precise.precise_ip = 1;
	registers_of(&precise, subject->host, &subject->encoding, &registers);
	if (subject->cpu->kernel->nr_precise)
		set(value, "accepted", json_boolean(!registers.refused));
	if (known && subject->cpu->kernel->nr_precise)
		set(value, "by_table", json_string(by_table[known->precise]));
	set(value, "level", json_integer(level));
	if (level < ARRAY_SIZE(means))
		set(value, "means", string(means[level]));
	if (level && subject->cpu->kernel->record)
		set(value, "record", string(subject->cpu->kernel->record));
	return value;
}

/* --- registers -------------------------------------------------------------------------------- */

static json_t *field_value(const struct register_field *field)
{
	json_t *bits = field->low == field->high ? json_sprintf("%d", field->low)
						 : json_sprintf("%d:%d", field->high, field->low);

	return json_pack("{s:s, s:o, s:I, s:s}", "name", field->name, "bits", bits, "value",
			 (json_int_t)field->value, "meaning", field->meaning);
}

static json_t *register_record(const struct register_value *reg)
{
	static const char *const counter[] = {[COUNTER_IN_ADDRESS] = "address", [COUNTER_IN_BITS] = "bits"};
	json_t *value = json_object(), *fields = json_array();

	set(value, "name", string(reg->name));
	set(value, "msr", value_hex(reg->msr));
	set(value, "value", value_hex(reg->value));
	set(value, "mask", value_hex(reg->mask));
	if (reg->rdpmc)
		set(value, "rdpmc", json_integer(reg->rdpmc));
	if (reg->counter != COUNTER_NOWHERE)
		set(value, "counter", string(counter[reg->counter]));
	for (size_t i = 0; i < reg->nr_fields; i++)
		json_array_append_new(fields, field_value(&reg->fields[i]));
	set(value, "fields", fields);
	return value;
}

static json_t *registers_value(const struct registers *registers)
{
	json_t *list = json_array();

	for (size_t i = 0; i < registers->nr; i++)
		json_array_append_new(list, register_record(&registers->list[i]));
	return list;
}

/* --- what else there is to know --------------------------------------------------------------- */

static bool has_threshold(const struct explained_subject *subject)
{
	return is_load_latency(subject->cpu, subject->encoding.config);
}

static bool shares_offcore(const struct explained_subject *subject, size_t registers)
{
	return offcore_register_of(subject->cpu, subject->encoding.config) &&
	       !subject->cpu->kernel->own_registers &&
	       extra_registers_of(subject->cpu, EXTRA_OFFCORE) == registers;
}

static bool shares_one_offcore(const struct explained_subject *subject)
{
	return shares_offcore(subject, 1);
}

static bool shares_two_offcore(const struct explained_subject *subject)
{
	return shares_offcore(subject, 2);
}

static bool shares_threshold(const struct explained_subject *subject)
{
	return has_threshold(subject) && !subject->cpu->kernel->own_registers;
}

static bool has_lbr(const struct explained_subject *subject)
{
	return event_uses_lbr(&subject->event->attr);
}

static bool shares_lbr(const struct explained_subject *subject)
{
	return has_lbr(subject) && subject->cpu->nr_branches && !subject->cpu->kernel->own_registers;
}

static bool is_fixed(const struct explained_subject *subject)
{
	return subject->registers.fixed_counter >= 0;
}

static bool is_precise(const struct explained_subject *subject)
{
	return subject->event->attr.precise_ip;
}

static bool has_lowest_period(const struct explained_subject *subject)
{
	return subject->cpu->kernel->lowest_period > 1;
}

static bool records_beyond(const struct explained_subject *subject)
{
	return subject->event->beyond > 0;
}

static bool records_several(const struct explained_subject *subject)
{
	return subject->event->at_least;
}

/* "%llu" in a rule is replaced by the lowest period. */
static const struct {
	bool (*holds)(const struct explained_subject *subject);
	const char *rule, *source;
} rules[] = {
	{is_fixed, "the fixed counter is taken before the general ones, if it is free",
	 "perf_sched_find_counter()"},
	{shares_one_offcore,
	 "a core has one OFFCORE_RSP_0 for both of its threads: events with another value take turns, in a "
	 "group they are refused",
	 "intel_shared_reg_get_constraints()"},
	{shares_two_offcore,
	 "a core has two registers of off-core responses for both of its threads: events with a third value "
	 "take turns, in a group they are refused",
	 "intel_shared_reg_get_constraints()"},
	{shares_threshold,
	 "a core has one threshold for both of its threads: events with another one take turns, in a group "
	 "they are refused",
	 "intel_shared_reg_get_constraints()"},
	{shares_lbr,
	 "a core has one branch filter for both of its threads: events with another one take turns",
	 "intel_shared_reg_get_constraints()"},
	{is_precise, "precise_ip needs a sample_period or sample_freq", "x86_pmu_hw_config()"},
	{records_beyond,
	 "a sample takes an event more than the kernel's period: the counter's overflow arms PEBS, and the "
	 "next event is recorded and not counted; nhmtap asks for a period shorter by one, if the driver "
	 "takes it, and adds these events to counts and to what samples stand for",
	 "guide, section 3.5; intel_pmu_pebs_enable()"},
	{records_several,
	 "several of these may occur at once, and a record takes at least one of them: how many is not "
	 "known, so samples are at least as far apart as asked, and counts and what samples stand for are "
	 "least values",
	 "guide, section 3.5"},
	{has_lowest_period, "a sample_period below %llu is refused", "the driver's limit_period()"},
};

static json_t *rules_value(const struct explained_subject *subject)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		char rule[320];

		if (!rules[i].holds(subject))
			continue;
		snprintf(rule, sizeof(rule), rules[i].rule, subject->cpu->kernel->lowest_period);
		json_array_append_new(list, json_pack("{s:s, s:s}", "rule", rule, "source", rules[i].source));
	}
	return list;
}

/* Whether the erratum concerns the event that is counted, by its row in the table or the note on its
 * encoding. */
static bool has_erratum(const struct explained_subject *subject, const struct known_erratum *erratum)
{
	const struct cpu_events *cpu = subject->cpu;

	if (erratum->all_events)
		return true;
	for (size_t i = 0; i < cpu->nr_events; i++)
		if (is_row(subject, &cpu->events[i], false) && cpu->events[i].errata &&
		    strstr(cpu->events[i].errata, erratum->name))
			return true;
	return subject->encoding.note && strstr(subject->encoding.note, erratum->name);
}

static json_t *errata_value(const struct explained_subject *subject)
{
	const struct known_kernel *kernel = subject->cpu->kernel;
	json_t *list = json_array();

	for (size_t i = 0; i < kernel->nr_errata; i++)
		if (has_erratum(subject, &kernel->errata[i]))
			json_array_append_new(list, json_pack("{s:s, s:s}", "name", kernel->errata[i].name,
							      "description", kernel->errata[i].description));
	return list;
}

/* Whether sources disagree about one of the event's names. An entry for the base of a family also concerns
 * its members: LATENCY_ABOVE_THRESHOLD for LATENCY_ABOVE_THRESHOLD_64. */
static bool is_of_names(const struct known_contradiction *entry, const json_t *names)
{
	size_t n;
	json_t *name;

	json_array_foreach(names, n, name)
		for (size_t i = 0; i < entry->nr_names; i++) {
			const char *rest = json_string_value(name);
			size_t length = strlen(entry->names[i]);

			if (strncasecmp(rest, entry->names[i], length))
				continue;
			rest += length;
			if (!*rest || (*rest == '_' && strspn(rest + 1, "0123456789")))
				return true;
		}
	return false;
}

/* The ids of the contradictions that concern the event. Those about branch records have no event names; they
 * are found by their ids. */
static json_t *disagreements_value(const struct explained_subject *subject)
{
	json_t *list = json_array(), *names = names_of(subject);

	for (size_t i = 0; i < subject->cpu->nr_contradictions; i++) {
		const struct known_contradiction *entry = &subject->cpu->contradictions[i];

		if (is_of_names(entry, names) || (has_lbr(subject) && !strncmp(entry->id, "lbr-", 4)))
			json_array_append_new(list, string(entry->id));
	}
	json_decref(names);
	return list;
}

/* --- records ---------------------------------------------------------------------------------- */

static json_t *event_record(const struct event *event, const struct host *host)
{
	json_t *record = json_pack("{s:s, s:s}", "type", "event", "schema_version", SCHEMA_VERSION);
	json_t *value = event_value(event, host), *reasons = json_object(), *emulated = emulated_value(host);

	for (size_t i = 0; i < event->nr_reasons; i++)
		set(reasons, event->reasons[i].field,
		    value_text(event->reasons[i].why, sizeof(event->reasons[i].why)));
	set(value, "why", reasons);
	if (emulated)
		set(record, "emulated", emulated);
	set(record, "event", value);
	return record;
}

/* Adds what is known of the event beyond the request to the kernel. */
static void add_hardware(json_t *record, const struct explained_subject *subject)
{
	set(record, "cpu", string(subject->cpu->name));
	set(record, "encoding", encoding_value(subject));
	set(record, "counters", counters_value(subject));
	set(record, "precise", precise_value(subject));
	set(record, "registers", registers_value(&subject->registers));
	set(record, "rules", rules_value(subject));
	set(record, "errata", errata_value(subject));
	set(record, "disagreements", disagreements_value(subject));
}

/* The ids of the contradictions about a unit, which begin with the unit's name: "l3bus-control". */
static json_t *unit_disagreements(const struct cpu_events *cpu, const char *unit)
{
	json_t *list = json_array();
	size_t length = strlen(unit);

	for (size_t i = 0; i < cpu->nr_contradictions; i++) {
		const char *id = cpu->contradictions[i].id;

		if (!strncmp(id, unit, length) && id[length] == '-')
			json_array_append_new(list, string(id));
	}
	return list;
}

/* Adds the registers that nhmtap itself writes for an event of a unit without a driver. */
static void add_own_registers(json_t *record, const struct event *event, const struct host *host)
{
	struct registers registers;

	unit_registers(event, &registers);
	set(record, "registers", registers_value(&registers));
	set(record, "disagreements", unit_disagreements(host->units, event->msr->name));
}

/* Fills in the subject. Returns false if the event is not counted by the core's counters, or if the CPU is
 * not known. */
static bool look_into(struct host *host, const struct event *event, struct explained_subject *subject)
{
	*subject = (struct explained_subject){.event = event, .cpu = host->events, .host = host};
	if (!subject->cpu || !subject->cpu->kernel || !encoding_of(&event->attr, host, &subject->encoding))
		return false;
	registers_of(&event->attr, subject->host, &subject->encoding, &subject->registers);
	return true;
}

static json_t *data_sources_record(const struct cpu_events *cpu)
{
	json_t *codes = json_array();

	for (size_t i = 0; i < cpu->nr_data_sources; i++) {
		const struct known_data_source *source = &cpu->data_sources[i];

		json_array_append_new(codes,
				      json_pack("{s:i, s:s, s:s, s:o, s:s, s:b}", "code", source->code,
						"name", source->name, "description", source->description,
						"data_src", value_hex(source->perf_data_src), "perf",
						source->perf, "reserved", source->reserved));
	}
	return json_pack("{s:s, s:s, s:s, s:o}", "type", "data_sources", "schema_version", SCHEMA_VERSION,
			 "cpu", cpu->name, "codes", codes);
}

static json_t *disagreement_record(const struct known_contradiction *entry)
{
	json_t *says = json_object();

	for (size_t i = 0; i < entry->nr_says; i++)
		set(says, entry->says[i].source, string(entry->says[i].claim));
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s, s:s}", "type", "disagreement", "schema_version",
			 SCHEMA_VERSION, "id", entry->id, "subject", entry->subject, "says", says, "we_do",
			 entry->we_do, "why", entry->why);
}

/* What the events' records refer to. It is written once, after all events. */
struct referred {
	bool data_sources;
	json_t *disagreements; /* {id: true} */
};

static void refer(struct referred *referred, const json_t *record)
{
	const json_t *ids = json_object_get(record, "disagreements");
	json_t *id;
	size_t i;

	json_array_foreach(ids, i, id)
		json_object_set_new(referred->disagreements, json_string_value(id), json_true());
}

static void write_record(struct stream *stream, json_t *record)
{
	stream->format->write(stream, record); /* an error is kept in the sink */
	json_decref(record);
}

static void write_disagreements(struct stream *stream, const struct cpu_events *cpu,
				const struct referred *referred)
{
	for (size_t i = 0; cpu && i < cpu->nr_contradictions; i++)
		if (json_object_get(referred->disagreements, cpu->contradictions[i].id))
			write_record(stream, disagreement_record(&cpu->contradictions[i]));
}

static void write_events(struct stream *stream, struct host *host, const struct events *events)
{
	struct referred referred = {.disagreements = json_object()};

	for (size_t i = 0; i < events->nr; i++) {
		json_t *record = event_record(&events->list[i], host);
		struct explained_subject subject;

		if (look_into(host, &events->list[i], &subject)) {
			add_hardware(record, &subject);
			referred.data_sources = referred.data_sources || has_threshold(&subject);
		} else if (events->list[i].msr) {
			add_own_registers(record, &events->list[i], host);
		}
		refer(&referred, record);
		write_record(stream, record);
	}
	write_disagreements(stream, host->events, &referred);
	if (host->units != host->events)
		write_disagreements(stream, host->units, &referred);
	if (referred.data_sources)
		write_record(stream, data_sources_record(host->events));
	json_decref(referred.disagreements);
}

static int run(const struct options *options, struct refusal *refusal)
{
	struct stream stream;
	struct plan plan = {0};
	struct host host = {0};
	int err = command_host(&host, options, refusal) || plan_explain(&plan, options, &host, refusal) ||
		  stream_open_options(&stream, options, refusal);

	if (!err) {
		write_events(&stream, &host, &plan.events);
		if (stream_close(&stream))
			err = sink_refusal(&stream.sink, refusal);
	}
	plan_release(&plan);
	host_release(&host);
	return err ? (int)refusal->status : STATUS_DONE;
}

static const struct option_row rows[] = {
	{'M', "metrics", "METRICS", OPTION_LIST, COMMON(metrics),
	 .help = "metrics to derive from counts: ipc, page_faults_per_second, …"},
	{0, "filter", "BRANCHES", OPTION_TEXT, COMMON(filter), .again = AGAIN_JOINS,
	 .help = "which branches the LBR records: any, any_call, any_ret, ind_call, ind_jmp, cond; sides u, "
		 "k"},
	{0},
};

static const struct command explain = {
	.name = "explain",
	.arguments = "[OPTIONS] EVENT …",
	.help = "shows how events would be opened, which registers the kernel would write, and why",
	.options = {event_rows, sampling_rows, stack_rows, rows, cpu_rows, format_rows, plan_rows, table_rows,
		    host_rows, machine_rows, help_rows},
	.run = run,
};
REGISTER_COMMAND(explain);
