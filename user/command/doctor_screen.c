// SPDX-License-Identifier: GPL-2.0-only
/* The tables of nhmtap doctor: what works, why the rest does not, and what mends it. With --verbose every
 * finding is printed before that. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/list.h"
#include "facility/facility.h"
#include "output/table.h"

#define NAME_WIDTH  21
#define STATE_WIDTH 7

static const struct {
	const char *type;
	const char *heading; /* above the first record of the type */
} headings[] = {
	{"processor", "MACHINE"},
	{"kernel", "MACHINE"},
	{"permission", "PERMISSION           OK     VALUE"},
	{"counters", "COUNTERS             FREE"},
	{"facility", "FACILITY             WORKS"},
};

static bool of_doctor(const json_t *start)
{
	return !strcmp(string(start, "command"), "doctor");
}

static const char *doctor_heading(const struct stream *stream, const json_t *record)
{
	if (!stream->verbose)
		return "";
	if (of_doctor(record))
		return headings[0].heading;
	for (size_t i = 0; i < ARRAY_SIZE(headings); i++)
		if (!strcmp(headings[i].type, string(record, "type")))
			return headings[i].heading;
	return "";
}

/* "mem       no     load latency and data source" */
static void add_finding(struct text *text, const char *name, const char *state, const char *words)
{
	text_add(text, "%-*s%-*s", NAME_WIDTH, name, *words ? STATE_WIDTH : 0, state);
	text_wrap(text, NAME_WIDTH + STATE_WIDTH, words);
}

static void add_line(struct text *text, const char *name, const char *format, ...)
{
	char words[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	text_add(text, "%-*s", NAME_WIDTH, name);
	text_wrap(text, NAME_WIDTH, words);
}

static void machine_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *host = json_object_get(record, "host");
	const json_t *cpu = json_object_get(host, "cpu");
	const char *events = string(cpu, "events");
	char known[160];

	if (!of_doctor(record))
		return;
	snprintf(known, sizeof(known), "%s%s",
		 *events			 ? "events of "
		 : json_object_get(cpu, "units") ? "events of --msr alone"
						 : "no table of its core's events",
		 events);
	if (!stream->verbose) {
		text_add(text, "%s, Linux %s, %s\n", string(cpu, "model_name"), string(host, "kernel"),
			 known);
		return;
	}
	add_line(text, "processor", "%s", string(cpu, "model_name"));
	add_line(text, "", "%s family %lld model %lld stepping %lld, %s", string(cpu, "vendor"),
		 (long long)integer(cpu, "family"), (long long)integer(cpu, "model"),
		 (long long)integer(cpu, "stepping"), known);
}

/* "lbr_format 3, pebs_trap 1" */
static const char *fields(const json_t *values, char *buffer, size_t size)
{
	const char *name;
	size_t used = 0;
	json_t *value;

	buffer[0] = '\0';
	json_object_foreach((json_t *)values, name, value)
		if (json_is_integer(value) && used < size)
			used += snprintf(buffer + used, size - used, "%s%s %lld", used ? ", " : "", name,
					 (long long)json_integer_value(value));
	return buffer;
}

/* The names of the architectural events that are missing by CPUID.0AH:EBX. */
static const char *missing_events(const json_t *events, char *buffer, size_t size)
{
	const char *name;
	size_t used = 0;
	json_t *there;

	buffer[0] = '\0';
	json_object_foreach((json_t *)events, name, there)
		if (json_is_false(there) && used < size)
			used += snprintf(buffer + used, size - used, "%s%s",
					 used ? ", " : "; without the events ", name);
	return buffer;
}

static void processor_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *signature = json_object_get(record, "signature");
	const json_t *perfmon = json_object_get(record, "perfmon");
	const json_t *msr;
	char words[512];
	size_t i;

	if (!stream->verbose)
		return;
	if (signature)
		add_line(text, "CPUID.1", "%s: %s", string(signature, "eax"),
			 fields(signature, words, sizeof(words)));
	if (perfmon && !integer(perfmon, "version"))
		add_line(text, "CPUID.0AH", "no architectural performance monitoring");
	else if (perfmon)
		add_line(text, "CPUID.0AH",
			 "version %lld, %lld general counters of %lld bits, %lld fixed ones of %lld%s",
			 (long long)integer(perfmon, "version"),
			 (long long)integer(perfmon, "general_counters"),
			 (long long)integer(perfmon, "general_width"),
			 (long long)integer(perfmon, "fixed_counters"),
			 (long long)integer(perfmon, "fixed_width"),
			 missing_events(json_object_get(perfmon, "events"), words, sizeof(words)));
	if (*string(record, "hypervisor"))
		add_line(text, "hypervisor", "%s", string(record, "hypervisor"));
	json_array_foreach(json_object_get(record, "registers"), i, msr) {
		const char *remedy = string(msr, "remedy");

		if (json_object_get(msr, "value"))
			add_line(text, string(msr, "name") + strlen("IA32_"), "%s: %s", string(msr, "value"),
				 fields(json_object_get(msr, "fields"), words, sizeof(words)));
		else
			add_line(text, string(msr, "name") + strlen("IA32_"), "%s%s%s", string(msr, "why"),
				 *remedy ? " → " : "", remedy);
	}
}

static void kernel_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *pmus = json_object_get(record, "pmus"), *pmu;
	char words[1024] = "";
	size_t i;

	if (!stream->verbose)
		return;
	add_line(text, "kernel", "%s, %s BTF, PTI %s", string(record, "release"),
		 json_is_true(json_object_get(record, "btf")) ? "with" : "without",
		 json_is_true(json_object_get(record, "page_table_isolation")) ? "on" : "off");
	json_array_foreach(pmus, i, pmu)
		list_append(words, sizeof(words), json_string_value(pmu));
	add_line(text, "PMUs", "%s", words);
}

static const char *yes_or_no(const json_t *record, const char *name)
{
	return json_is_true(json_object_get(record, name)) ? "yes" : "no";
}

static void permission_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *value = json_object_get(record, "value");
	char number[24];

	if (!stream->verbose)
		return;
	snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
	add_finding(text, string(record, "name"), yes_or_no(record, "ok"),
		    json_is_string(value) ? json_string_value(value) : number);
}

static void counters_table(struct text *text, const struct stream *stream, const json_t *record)
{
	char number[24];

	if (!stream->verbose)
		return;
	snprintf(number, sizeof(number), "%lld", (long long)integer(record, "general_free"));
	add_finding(text, "general", number, "");
	snprintf(number, sizeof(number), "%lld", (long long)integer(record, "fixed_free"));
	add_finding(text, "fixed", number,
		    json_is_true(json_object_get(record, "nmi_watchdog"))
			    ? "the NMI watchdog is on and holds a counter (kernel.nmi_watchdog)"
			    : "");
}

static void facility_table(struct text *text, const struct stream *stream, const json_t *record)
{
	if (stream->verbose)
		add_finding(text, string(record, "name"), yes_or_no(record, "works"),
			    string(record, "title"));
}

/* --- the diagnosis ---------------------------------------------------------------------------- */

/* The names of facilities in a list; with `all` also those of permissions and counters, which are left out
 * otherwise because a missing permission shows in the facilities that need it. Returns a new reference. */
static json_t *shown_names(const json_t *names, bool all)
{
	json_t *list = json_array(), *name;
	size_t i;

	json_array_foreach(names, i, name)
		if (all || facility_find(json_string_value(name), json_string_length(name)))
			json_array_append(list, name);
	return list;
}

/* The names as "a, b, c". The caller frees it. */
static char *join_names(const json_t *names)
{
	struct text text = {0};
	json_t *name;
	size_t i;

	text_add(&text, "%s", "");
	json_array_foreach(names, i, name)
		text_add(&text, "%s%s", i ? ", " : "", json_string_value(name));
	return text.bytes;
}

#define INDENT 4

/* Adds " mem, branch: the reason", wrapped and indented. */
static void add_names(struct text *text, const json_t *names, const char *words)
{
	struct text line = {.width = text->width};
	char *list = join_names(names);

	text_add(&line, "%s: %s", list, words);
	text_add(text, "  ");
	text_wrap(text, INDENT, line.bytes);
	free(line.bytes);
	free(list);
}

/* Which parts of a diagnosis are printed: everything with -v, otherwise only what fits on the screen. */
struct scope {
	bool verbose;
	json_t *untold;	   /* names whose reasons are printed only with -v */
	const char *words; /* text that stands for their reasons */
};

/* Lines of a screen of 24 that are free besides the prompt and the line about the machine. */
#define SCREEN_LINES 22

static size_t lines_of(const struct text *text)
{
	size_t lines = 0;

	for (size_t i = 0; i < text->used; i++)
		lines += text->bytes[i] == '\n';
	return lines;
}

static bool contains(const json_t *list, const json_t *wanted)
{
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
		if (json_equal(one, wanted))
			return true;
	return false;
}

static bool all_untold(const struct scope *scope, const json_t *names)
{
	json_t *name;
	size_t i;

	json_array_foreach(names, i, name)
		if (!contains(scope->untold, name))
			return false;
	return true;
}

/* Leaves out reasons that can't be mended; with `single` also reasons of a single facility. */
static struct scope scope_of(const json_t *reasons, bool verbose, bool single)
{
	struct scope scope = {verbose, json_array(), "no Linux kernel offers them (-v says why)"};
	json_t *reason;
	size_t i;

	if (single)
		scope.words = "a reason of its own each (-v says which)";
	json_array_foreach(reasons, i, reason) {
		json_t *stops = shown_names(json_object_get(reason, "stops"), verbose);

		if (!verbose && (json_is_false(json_object_get(reason, "possible")) ||
				 (single && json_array_size(stops) == 1)))
			json_array_extend(scope.untold, stops);
		json_decref(stops);
	}
	return scope;
}

static void add_reasons(struct text *text, const json_t *reasons, const struct scope *scope)
{
	json_t *reason;
	size_t i;

	if (json_array_size(reasons))
		text_add(text, "\nDOES NOT WORK\n");
	json_array_foreach(reasons, i, reason) {
		json_t *stops = shown_names(json_object_get(reason, "stops"), scope->verbose);

		if (!all_untold(scope, stops))
			add_names(text, stops, string(reason, "why"));
		json_decref(stops);
	}
	if (json_array_size(scope->untold))
		add_names(text, scope->untold, scope->words);
}

#define MENDS_SHOWN 3

/* "  1. modprobe rapl (rapl)" */
static void add_remedy(struct text *text, size_t number, const char *words, const json_t *mends)
{
	size_t nr = json_array_size(mends);
	struct text line = {.width = text->width};
	char *list = join_names(mends);

	text_add(&line, "%s", words);
	if (nr > MENDS_SHOWN)
		text_add(&line, " (for %zu of these)", nr);
	else
		text_add(&line, " (%s)", list);
	text_add(text, "  %zu. ", number);
	text_wrap(text, INDENT + 1, line.bytes);
	free(line.bytes);
	free(list);
}

static void add_remedies(struct text *text, const json_t *remedies, const struct scope *scope)
{
	size_t i, number = 0;
	json_t *remedy;

	json_array_foreach(remedies, i, remedy) {
		json_t *mends = shown_names(json_object_get(remedy, "mends"), scope->verbose);

		if (!all_untold(scope, mends)) {
			if (!number)
				text_add(text, "\nWHAT TO DO, the smallest change first\n");
			add_remedy(text, ++number, string(remedy, "remedy"), mends);
		}
		json_decref(mends);
	}
}

static void add_diagnosis(struct text *text, const json_t *record, struct scope scope)
{
	add_reasons(text, json_object_get(record, "reasons"), &scope);
	add_remedies(text, json_object_get(record, "remedies"), &scope);
	json_decref(scope.untold);
}

static void diagnosis_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *works = json_object_get(record, "works"), *reasons = json_object_get(record, "reasons");
	size_t begin;

	if (json_array_size(works)) {
		char *list = join_names(works);

		text_add(text, "%sWORKS  ", stream->verbose ? "\n" : "");
		text_wrap(text, strlen("WORKS  "), list);
		free(list);
	}
	begin = text->used;
	add_diagnosis(text, record, scope_of(reasons, stream->verbose, false));
	if (stream->verbose || lines_of(text) <= SCREEN_LINES)
		return;
	text->used = begin;
	add_diagnosis(text, record, scope_of(reasons, false, true));
}

REGISTER_TABLE_IN(start, machine_table, doctor_heading);
REGISTER_TABLE_IN(processor, processor_table, doctor_heading);
REGISTER_TABLE_IN(kernel, kernel_table, doctor_heading);
REGISTER_TABLE_IN(permission, permission_table, doctor_heading);
REGISTER_TABLE_IN(counters, counters_table, doctor_heading);
REGISTER_TABLE_IN(facility, facility_table, doctor_heading);
REGISTER_TABLE(diagnosis, diagnosis_table);
