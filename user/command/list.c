// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap list [PATTERN]: the names of events on this machine, or on another CPU. */
#include <fnmatch.h>
#include <string.h>

#include "activity/start.h"
#include "command/host.h"
#include "option/command.h"
#include "tables/names.h"
#include "event/registers.h"
#include "metric/metric.h"
#include "output/output.h"
#include "record/record.h"

/* list's own options. */
struct list_options {
	bool precise; /* --precise: only events that can be sampled precisely */
};

struct listing {
	struct host *host;
	const char *pattern; /* NULL: list everything */
	bool precise;	     /* only events that the kernel accepts as precise */
	json_t *emulated;    /* the machine that this is, if it is emulated; else NULL */
	struct stream stream;
	size_t found;
};

static json_t *string(const char *text)
{
	return value_text(text, strlen(text));
}

static void set(json_t *object, const char *name, json_t *value)
{
	json_object_set_new(object, name, value);
}

/* --- what is wanted --------------------------------------------------------------------------- */

/* A pattern with * ? [ must match the whole text. Of any other, each word is searched for within the text.
 * Upper and lower case are the same. */
static bool matches_words(const char *pattern, const char *text)
{
	const char *word;
	size_t length;

	if (strpbrk(pattern, "*?["))
		return !fnmatch(pattern, text, FNM_CASEFOLD);
	for (word = pattern + strspn(pattern, " "); *word; word += length + strspn(word + length, " ")) {
		char wanted[200];

		length = strcspn(word, " ");
		snprintf(wanted, sizeof(wanted), "%.*s", (int)length, word);
		if (!strcasestr(text, wanted))
			return false;
	}
	return true;
}

static bool text_matches(const char *pattern, const json_t *text)
{
	return text && matches_words(pattern, json_string_value(text));
}

static bool is_wanted(const struct listing *listing, const json_t *record)
{
	const json_t *aliases = json_object_get(record, "aliases");
	json_t *alias;
	size_t i;

	if (listing->precise && !json_is_true(json_object_get(record, "precise")))
		return false;
	if (!listing->pattern || text_matches(listing->pattern, json_object_get(record, "name")) ||
	    text_matches(listing->pattern, json_object_get(record, "description")) ||
	    text_matches(listing->pattern, json_object_get(record, "section")))
		return true;
	json_array_foreach(aliases, i, alias)
		if (text_matches(listing->pattern, alias))
			return true;
	return false;
}

/* Writes the record if it is wanted. The reference is consumed. */
static void offer_record(struct listing *listing, json_t *record)
{
	if (is_wanted(listing, record)) {
		listing->found++;
		if (listing->emulated)
			json_object_set(record, "emulated", listing->emulated);
		listing->stream.format->write(&listing->stream, record); /* an error is kept in the sink */
	}
	json_decref(record);
}

static json_t *listed(const char *section, const char *name)
{
	return json_pack("{s:s, s:s, s:s, s:o}", "type", "listed", "schema_version", SCHEMA_VERSION,
			 "section", section, "name", string(name));
}

static void set_alias(json_t *record, const char *alias)
{
	json_t *aliases = json_object_get(record, "aliases");

	if (!aliases)
		set(record, "aliases", aliases = json_array());
	json_array_append_new(aliases, string(alias));
}

/* --- what the counters do --------------------------------------------------------------------- */

/* Adds how the kernel programs a core event: its encoding, its counters, and whether it can be precise. */
static void set_hardware(json_t *record, const struct host *host, const struct encoding *encoding)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_RAW, .config = encoding->config};
	const struct cpu_events *cpu = host->events;
	struct registers registers;

	set(record, "cpu", string(cpu->name));
	set(record, "config", value_hex(encoding->config));
	if (encoding->config1)
		set(record, "config1", value_hex(encoding->config1));
	if (!cpu->kernel)
		return;
	registers_of(&attr, host, encoding, &registers);
	set(record, "counters", value_bits(registers.counters));
	if (registers.fixed_counter >= 0)
		set(record, "fixed_counter", json_integer(registers.fixed_counter));
	if (!cpu->kernel->nr_precise)
		return;
	attr.precise_ip = 1;
	registers_of(&attr, host, encoding, &registers);
	set(record, "precise", json_boolean(!registers.refused));
}

/* --- perf's own names ------------------------------------------------------------------------- */

static void list_generic(struct listing *listing, const char *section, __u32 type)
{
	const struct cpu_events *cpu = listing->host->events;

	for (size_t i = 0; i < nr_generic_events; i++) {
		const struct generic_event *event = &generic_events[i];
		struct perf_event_attr attr = {.type = type, .config = event->config};
		struct encoding encoding;
		json_t *record;

		if (event->type != type || generic_missing(listing->host, event) >= 0)
			continue;
		record = listed(section, event->name);
		if (event->alias)
			set_alias(record, event->alias);
		if (event->unit[0])
			set(record, "unit", string(event->unit));
		if (cpu && cpu->kernel && encoding_of(&attr, listing->host, &encoding))
			set_hardware(record, listing->host, &encoding);
		offer_record(listing, record);
	}
}

/* perf's cache events. Which of them a CPU has is known only if its table has the kernel's encodings. */
static void list_cache(struct listing *listing)
{
	const struct cpu_events *cpu = listing->host->events;

	for (size_t i = 0; cpu && cpu->kernel && i < cpu->kernel->nr_generic; i++) {
		const struct known_generic *generic = &cpu->kernel->generic[i];
		struct encoding encoding = {.config = generic->config, .config1 = generic->config1};
		json_t *record;

		if (generic_event_find(generic->name))
			continue;
		record = listed("hardware, caches", generic->name);
		set_hardware(record, listing->host, &encoding);
		offer_record(listing, record);
	}
}

/* --- the drivers' names ----------------------------------------------------------------------- */

static void list_drivers(struct listing *listing)
{
	for (const struct pmu *pmu = listing->host->pmus; pmu; pmu = pmu->next)
		for (size_t i = 0; i < pmu->nr_aliases; i++) {
			const struct pmu_alias *alias = &pmu->aliases[i];
			char name[160];
			json_t *record;

			snprintf(name, sizeof(name), "%s/%s/", pmu->name, alias->name);
			record = listed("named by drivers", name);
			set(record, "terms", string(alias->terms));
			if (alias->unit[0])
				set(record, "unit", string(alias->unit));
			offer_record(listing, record);
		}
}

/* --- the CPU's table -------------------------------------------------------------------------- */

static void list_event(struct listing *listing, const struct known_event *event)
{
	const struct cpu_events *cpu = listing->host->events;
	struct encoding encoding = {.config = event->config, .config1 = event->config1};
	json_t *record;

	if (event_missing(listing->host, event))
		return;
	record = listed(event->topic, event->name);

	for (size_t i = 0; i < cpu->nr_aliases; i++)
		if (!strcmp(cpu->aliases[i].of, event->name))
			set_alias(record, cpu->aliases[i].name);
	set(record, "description", string(event->description));
	set_hardware(record, listing->host, &encoding);
	set(record, "default_period", json_integer(event->default_period));
	if (event->errata)
		set(record, "errata", string(event->errata));
	set(record, "source", string(event->source));
	offer_record(listing, record);
}

/* Topics are listed in alphabetical order, and the events of a topic in the order of the table. */
static const char *next_topic(const struct cpu_events *cpu, const char *last)
{
	const char *next = NULL;

	for (size_t i = 0; i < cpu->nr_events; i++)
		if (strcmp(cpu->events[i].topic, last) > 0 &&
		    (!next || strcmp(cpu->events[i].topic, next) < 0))
			next = cpu->events[i].topic;
	return next;
}

static void list_table(struct listing *listing)
{
	const struct cpu_events *cpu = listing->host->events;

	for (const char *topic = next_topic(cpu, ""); topic; topic = next_topic(cpu, topic))
		for (size_t i = 0; i < cpu->nr_events; i++)
			if (!strcmp(cpu->events[i].topic, topic))
				list_event(listing, &cpu->events[i]);
}

/* The parts of OFFCORE_RESPONSE.REQUEST.RESPONSE. */
static void list_parts(struct listing *listing, const char *section, const struct offcore_part *parts,
		       size_t nr)
{
	const struct cpu_events *cpu = listing->host->events;

	for (size_t i = 0; i < nr; i++) {
		json_t *record = listed(section, parts[i].name);

		for (size_t a = 0; a < cpu->offcore->nr_aliases; a++)
			if (!strcmp(cpu->offcore->aliases[a].of, parts[i].name))
				set_alias(record, cpu->offcore->aliases[a].name);
		set(record, "description", string(parts[i].description));
		set(record, "cpu", string(cpu->name));
		set(record, "config1", value_hex(parts[i].bits));
		set(record, "source", string(cpu->offcore->source));
		offer_record(listing, record);
	}
}

static void list_offcore(struct listing *listing)
{
	const struct known_offcore *offcore = listing->host->events->offcore;

	if (!offcore)
		return;
	list_parts(listing, "OFFCORE_RESPONSE, requests", offcore->requests, offcore->nr_requests);
	list_parts(listing, "OFFCORE_RESPONSE, responses", offcore->responses, offcore->nr_responses);
}

/* --- counters that Linux has no driver for ---------------------------------------------------- */

static void list_unit_value(struct listing *listing, const char *section, const struct unit_field *field,
			    const char *value, const char *source)
{
	char name[160];
	json_t *record;

	snprintf(name, sizeof(name), "%s%s%s", field->name, *value ? "=" : "", value);
	record = listed(section, name);
	set(record, "description", string(field->description));
	set(record, "cpu", string(listing->host->units->name));
	set(record, "source", string(source));
	offer_record(listing, record);
}

static void list_unit_fields(struct listing *listing, const char *section, const struct unit_field *fields,
			     size_t nr, const char *source)
{
	for (size_t f = 0; f < nr; f++) {
		if (!fields[f].nr_values)
			list_unit_value(listing, section, &fields[f], "", source);
		for (size_t v = 0; v < fields[f].nr_values; v++)
			list_unit_value(listing, section, &fields[f], fields[f].values[v].name, source);
	}
}

static void list_unit_kind(struct listing *listing, const struct known_unit *unit,
			   const struct unit_kind *kind)
{
	char section[160], name[160];
	json_t *record;

	snprintf(section, sizeof(section), "%s, with --msr", unit->name);
	snprintf(name, sizeof(name), "%s/%s/", unit->name, kind->name);
	record = listed(section, name);
	set(record, "description", string(kind->description));
	set(record, "cpu", string(listing->host->units->name));
	set(record, "source", string(unit->source));
	offer_record(listing, record);
	snprintf(section, sizeof(section), "%s/%s,…/, terms", unit->name, kind->name);
	list_unit_fields(listing, section, kind->fields, kind->nr_fields, unit->source);
	for (size_t m = 0; m < kind->nr_metrics; m++) {
		const struct unit_field metric = {.name = "metric",
						  .description = kind->metrics[m].description};

		list_unit_value(listing, section, &metric, kind->metrics[m].name, unit->source);
	}
}

/* Adds the terms that all events of the unit take. */
static void list_unit_terms(struct listing *listing, const struct known_unit *unit)
{
	static const struct unit_field overflow = {
		.name = "overflow=N",
		.description = "the counter overflows after N occurrences, and starts one that cascades"};
	char section[160];

	if (!unit->nr_fields)
		return;
	snprintf(section, sizeof(section), "%s/…/, terms of all its events", unit->name);
	list_unit_fields(listing, section, unit->fields, unit->nr_fields, unit->source);
	list_unit_value(listing, section, &overflow, "", unit->source);
}

static void list_units(struct listing *listing)
{
	const struct cpu_events *cpu = listing->host->units;

	for (size_t u = 0; cpu && u < cpu->nr_units; u++) {
		for (size_t k = 0; k < cpu->units[u].nr_kinds; k++)
			list_unit_kind(listing, &cpu->units[u], &cpu->units[u].kinds[k]);
		list_unit_terms(listing, &cpu->units[u]);
	}
}

/* --- perf's own files ------------------------------------------------------------------------- */

static void list_pmu_events(struct listing *listing)
{
	const struct pmu_events *events = &listing->host->pmu_events;

	for (size_t i = 0; i < events->nr; i++) {
		const struct pmu_event *event = &events->list[i];
		json_t *record = listed("perf's own files", event->name);

		if (*event->description)
			set(record, "description", string(event->description));
		if (event->pmu)
			set(record, "pmu", string(event->pmu));
		set(record, "terms", string(event->terms));
		if (event->default_period)
			set(record, "default_period", json_integer(event->default_period));
		set(record, "source", string(events->source));
		set(record, "curated", json_false());
		offer_record(listing, record);
	}
}

/* --- metrics ---------------------------------------------------------------------------------- */

static void list_metrics(struct listing *listing, const char *cpu, const struct known_metric *metrics,
			 size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		json_t *record;

		if (metric_find(listing->host, metrics[i].name) != &metrics[i])
			continue; /* another metric of this name has precedence: the CPU's over perf's */
		record = listed("metrics, for -M", metrics[i].name);
		if (cpu)
			set(record, "cpu", string(cpu));
		set(record, "description", string(metrics[i].description));
		set(record, "unit", string(metrics[i].unit));
		set(record, "formula", string(metrics[i].formula));
		set(record, "source", string(metrics[i].source));
		offer_record(listing, record);
	}
}

/* --- the whole -------------------------------------------------------------------------------- */

static void list_all(struct listing *listing)
{
	const struct cpu_events *cpu = listing->host->events;
	bool core = cpu && host_core_pmu(listing->host);

	list_generic(listing, "software", PERF_TYPE_SOFTWARE);
	if (host_core_pmu(listing->host)) {
		list_generic(listing, "hardware", PERF_TYPE_HARDWARE);
		list_cache(listing);
	}
	list_drivers(listing);
	if (core) {
		list_table(listing);
		list_offcore(listing);
	}
	list_units(listing);
	if (core)
		list_metrics(listing, cpu->name, cpu->metrics, cpu->nr_metrics);
	list_pmu_events(listing);
	list_metrics(listing, NULL, listing->host->tables.metrics, listing->host->tables.nr_metrics);
}

static int refuse_pattern(const struct listing *listing, struct refusal *refusal)
{
	char near[400];

	refuse(refusal, STATUS_USAGE, "list '%s'", listing->pattern ? listing->pattern : "");
	because(refusal, "no event%s matches", listing->precise ? " that can be precise" : "");
	if (listing->pattern && nearest_names(listing->host->events, listing->pattern, 3, near, sizeof(near)))
		return instead(refusal, "did you mean %s?", near);
	return instead(refusal, "nhmtap list shows all of them; --cpu nehalem-ep another CPU's");
}

static int check_arguments(const struct options *options, struct refusal *refusal)
{
	if (options->nr_rest <= 1)
		return 0;
	refuse(refusal, STATUS_USAGE, "list with %d patterns", options->nr_rest);
	because(refusal, "it takes one");
	return instead(refusal, "put the shell's quotes around it, so that it stays one word");
}

static int run(const struct options *options, struct refusal *refusal)
{
	const struct list_options *own = options->own;
	struct host host = {0};
	struct listing listing = {.host = &host, .precise = own->precise};
	int err = check_arguments(options, refusal) || command_host(&host, options, refusal) ||
		  stream_open_options(&listing.stream, options, refusal);

	if (!err) {
		if (options->nr_rest)
			listing.pattern = options->rest[0];
		if (!options->cpu)
			host_read_pmus(&host);
		listing.emulated = emulated_value(&host);
		list_all(&listing);
		json_decref(listing.emulated);
		if (stream_close(&listing.stream))
			err = sink_refusal(&listing.stream.sink, refusal);
		else if (!listing.found)
			err = refuse_pattern(&listing, refusal);
	}
	host_release(&host);
	return err ? (int)refusal->status : STATUS_DONE;
}

static const char *const json[] = {"json", NULL};

static const struct option_row rows[] = {
	{0, "precise", NULL, OPTION_FLAG, OWN(struct list_options, precise),
	 .help = "only events that the kernel samples precisely, marked [p]"},
	{0, "json", NULL, OPTION_FIXED, COMMON(format), .words = json, .help = "as --format json"},
	{0},
};

static const struct command list = {
	.name = "list",
	.arguments = "[OPTIONS] [PATTERN]",
	.help = "lists the events of this machine, or of another CPU",
	.options = {cpu_rows, rows, format_rows, table_rows, host_rows, machine_rows, help_rows},
	.own_size = sizeof(struct list_options),
	.run = run,
};
REGISTER_COMMAND(list);
