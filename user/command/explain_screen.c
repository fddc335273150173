// SPDX-License-Identifier: GPL-2.0-only
/* The table of an explained event: headings, and below each a line for each fact. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "output/table.h"

#define INDENT 4

static void heading(struct text *text, const char *words)
{
	text_add(text, "\n  %s\n", words);
}

/* "    NAME  words …", the words in a column of their own. */
static void fact(struct text *text, int width, const char *name, const char *words)
{
	text_add(text, "%*s%-*s  ", INDENT, "", width, name);
	text_wrap(text, INDENT + width + 2, words);
}

static void fact_if_any(struct text *text, int width, const char *name, const char *words)
{
	if (*words)
		fact(text, width, name, words);
}

/* --- what is asked of the kernel -------------------------------------------------------------- */

#define MEMBER_WIDTH 18

static void attr_rows(struct text *text, const json_t *event)
{
	const json_t *why = json_object_get(event, "why");
	json_t *attr = json_object_get(event, "attr"), *value;
	const char *member;

	heading(text, "perf_event_attr");
	json_object_foreach(attr, member, value) {
		const char *reason = string(why, member);

		/* sample_freq and sample_period are a union in struct perf_event_attr, so the reason is noted
		 * for sample_period. */
		if (!*reason && !strcmp(member, "sample_freq"))
			reason = string(why, "sample_period");
		text_add(text, "%*s%-*s  ", INDENT, "", MEMBER_WIDTH, member);
		if (json_is_string(value))
			text_add(text, "%-12s  ", json_string_value(value));
		else
			text_add(text, "%-12lld  ", (long long)json_integer_value(value));
		text_wrap(text, INDENT + MEMBER_WIDTH + 16, reason);
	}
}

/* --- what counts, and where ------------------------------------------------------------------- */

#define LABEL_WIDTH 10

/* Adds the elements of a list, separated by ", ". */
static void add_joined(struct text *text, const json_t *list)
{
	size_t i;
	json_t *value;

	json_array_foreach(list, i, value) {
		if (json_is_string(value))
			text_add(text, "%s%s", i ? ", " : "", json_string_value(value));
		else
			text_add(text, "%s%lld", i ? ", " : "", (long long)json_integer_value(value));
	}
}

static void fact_of_list(struct text *text, const char *name, const char *before, const json_t *list)
{
	struct text words = {0};

	text_add(&words, "%s", before);
	add_joined(&words, list);
	fact(text, LABEL_WIDTH, name, words.bytes);
	free(words.bytes);
}

static void encoding_rows(struct text *text, const json_t *encoding)
{
	struct text words = {0};

	heading(text, "what counts");
	text_add(&words, "%s", string(encoding, "config"));
	if (json_object_get(encoding, "config1"))
		text_add(&words, " with config1 %s", string(encoding, "config1"));
	text_add(&words, " (%s)", string(encoding, "source"));
	fact(text, LABEL_WIDTH, "config", words.bytes);
	free(words.bytes);
	if (json_array_size(json_object_get(encoding, "names")))
		fact_of_list(text, "names", "", json_object_get(encoding, "names"));
	fact_if_any(text, LABEL_WIDTH, "but", string(encoding, "note"));
}

static void counter_rows(struct text *text, const json_t *counters)
{
	heading(text, "counters");
	if (json_object_get(counters, "fixed")) {
		char number[32];

		snprintf(number, sizeof(number), "%lld", integer(counters, "fixed"));
		fact(text, LABEL_WIDTH, "fixed", number);
	}
	if (json_array_size(json_object_get(counters, "general")))
		fact_of_list(text, "general", "", json_object_get(counters, "general"));
	if (json_object_get(counters, "by_table"))
		fact_of_list(text, "by table", "general ", json_object_get(counters, "by_table"));
}

static void precise_rows(struct text *text, const json_t *precise)
{
	char level[32];

	heading(text, "precise");
	if (json_object_get(precise, "accepted"))
		fact(text, LABEL_WIDTH, "kernel",
		     json_is_true(json_object_get(precise, "accepted")) ? "takes precise_ip 1 and 2"
									: "refuses precise_ip");
	fact_if_any(text, LABEL_WIDTH, "by table", string(precise, "by_table"));
	snprintf(level, sizeof(level), "level %lld", integer(precise, "level"));
	fact(text, LABEL_WIDTH, level, string(precise, "means"));
	fact_if_any(text, LABEL_WIDTH, "record", string(precise, "record"));
}

/* --- registers -------------------------------------------------------------------------------- */

static void field_row(struct text *text, const json_t *field)
{
	bool wide = strchr(string(field, "bits"), ':');
	char value[24];

	snprintf(value, sizeof(value), wide ? "0x%02llx" : "%lld", integer(field, "value"));
	text_add(text, "      %5s  %-18s  %-6s  ", string(field, "bits"), string(field, "name"), value);
	text_wrap(text, 41, string(field, "meaning"));
}

static void register_rows(struct text *text, const char *title, const json_t *registers)
{
	size_t i, f;
	json_t *reg, *field;

	heading(text, title);
	json_array_foreach(registers, i, reg) {
		const char *counter = string(reg, "counter");

		text_add(text, "    %s  MSR %s%s  =  %s%s", string(reg, "name"), string(reg, "msr"),
			 !strcmp(counter, "address") ? "+x" : "", string(reg, "value"),
			 !strcmp(counter, "bits") ? " << x" : "");
		if (json_object_get(reg, "rdpmc"))
			text_add(text, ", read by RDPMC %lld", integer(reg, "rdpmc"));
		text_add(text, "\n");
		json_array_foreach(json_object_get(reg, "fields"), f, field)
			field_row(text, field);
	}
}

/* --- the rest --------------------------------------------------------------------------------- */

static void rule_rows(struct text *text, const json_t *rules)
{
	size_t i;
	json_t *rule;

	if (json_array_size(rules))
		heading(text, "the kernel's rules");
	json_array_foreach(rules, i, rule) {
		struct text words = {0};

		text_add(&words, "%s (%s)", string(rule, "rule"), string(rule, "source"));
		text_add(text, "    - ");
		text_wrap(text, 6, words.bytes);
		free(words.bytes);
	}
}

static void errata_rows(struct text *text, const json_t *errata)
{
	size_t i;
	json_t *erratum;

	if (json_array_size(errata))
		heading(text, "errata");
	json_array_foreach(errata, i, erratum)
		fact(text, 13, string(erratum, "name"), string(erratum, "description"));
}

/* Which part of the machine has a counter of this kind, and on which CPUs it is counted. */
static void scope_row(struct text *text, const json_t *event)
{
	const char *cpus = string(event, "cpus");
	char words[400];

	if (!*string(event, "scope"))
		return;
	snprintf(words, sizeof(words), "%s%s%s", string(event, "scope_why"),
		 *cpus ? "; counted with -a or -C only, on CPUs " : "", cpus);
	text_add(text, "  ");
	text_wrap(text, 2, words);
}

/* --- the answer in short ---------------------------------------------------------------------- */

static void add_counters(struct text *words, const json_t *counters)
{
	const json_t *general = json_object_get(counters, "general");
	bool fixed = json_object_get(counters, "fixed");

	text_add(words, "Counts on ");
	if (fixed)
		text_add(words, "fixed counter %lld%s", integer(counters, "fixed"),
			 json_array_size(general) ? " or " : "");
	if (json_array_size(general)) {
		text_add(words, "general counter%s ", json_array_size(general) > 1 ? "s" : "");
		add_joined(words, general);
	}
}

static void add_precision(struct text *words, const json_t *precise)
{
	static const char *const sampled[] = {
		"samples come some instructions late",
		"samples name the next instruction",
		"samples name the instruction itself",
		"the kernel refuses :ppp",
	};
	size_t level = integer(precise, "level");
	const json_t *accepted = json_object_get(precise, "accepted");

	if (level < ARRAY_SIZE(sampled))
		text_add(words, "; %s", sampled[level]);
	if (!level && accepted)
		text_add(words, json_is_true(accepted) ? ", with :pp they name the one that counted"
						       : ", precise ones (:pp) are refused");
}

static void verdict_rows(struct text *text, const json_t *record)
{
	const json_t *errata = json_object_get(record, "errata");
	struct text words = {0};
	json_t *erratum;
	size_t i;

	add_counters(&words, json_object_get(record, "counters"));
	add_precision(&words, json_object_get(record, "precise"));
	text_add(&words, ".");
	json_array_foreach(errata, i, erratum)
		text_add(&words, "%s%s", i ? ", " : " Errata, below: ", string(erratum, "name"));
	if (json_array_size(errata))
		text_add(&words, ".");
	text_add(text, "  ");
	text_wrap(text, 2, words.bytes);
	free(words.bytes);
}

static void event_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *event = json_object_get(record, "event");

	text_wrap(text, 2, string(event, "name"));
	if (*string(event, "description")) {
		text_add(text, "  ");
		text_wrap(text, 2, string(event, "description"));
	}
	if (*string(event, "note")) {
		text_add(text, "  Note: ");
		text_wrap(text, 2, string(event, "note"));
	}
	scope_row(text, event);
	if (json_object_get(record, "encoding"))
		verdict_rows(text, record);
	attr_rows(text, event);
	if (json_object_get(record, "encoding")) {
		encoding_rows(text, json_object_get(record, "encoding"));
		counter_rows(text, json_object_get(record, "counters"));
		precise_rows(text, json_object_get(record, "precise"));
		register_rows(text, "registers (x: the counter)", json_object_get(record, "registers"));
		rule_rows(text, json_object_get(record, "rules"));
		errata_rows(text, json_object_get(record, "errata"));
	} else if (json_object_get(record, "registers")) {
		register_rows(text, "registers that --msr writes, in this order",
			      json_object_get(record, "registers"));
	}
	text_add(text, "\n");
}

static void disagreement_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const char *source;
	json_t *claim;

	text_add(text, "sources disagree: ");
	text_wrap(text, 2, string(record, "subject"));
	json_object_foreach(json_object_get(record, "says"), source, claim)
		fact(text, LABEL_WIDTH, source, json_string_value(claim));
	fact(text, LABEL_WIDTH, "here", string(record, "we_do"));
	fact(text, LABEL_WIDTH, "because", string(record, "why"));
	text_add(text, "\n");
}

static void data_sources_table(struct text *text, const struct stream *stream, const json_t *record)
{
	size_t i;
	json_t *code;

	text_add(text, "where a load's data came from, by the code in its PEBS record\n");
	json_array_foreach(json_object_get(record, "codes"), i, code) {
		text_add(text, "  0x%llx  ", integer(code, "code"));
		text_wrap(text, 7, string(code, "description"));
		text_add(text, "       data_src %s: ", string(code, "data_src"));
		text_wrap(text, 7, string(code, "perf"));
	}
	text_add(text, "\n");
}

REGISTER_TABLE(event, event_table);
REGISTER_TABLE(disagreement, disagreement_table);
REGISTER_TABLE(data_sources, data_sources_table);
