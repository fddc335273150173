// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes the tables of this folder as one C file for user/tables/known_event.h. The reader is the one of
 * --events-dir (user/tables/tables.h), here with nothing built in, so both kinds of tables are checked by the
 * same code. A fault is told with its file and entry, and nothing is written.
 *
 *     compile FOLDER -o FILE.c [--depfile FILE.d]
 */
#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <jansson.h>

#include "base/array.h"
#include "base/embedded.h"
#include "base/memory.h"
#include "tables/known_event.h"
#include "tables/tables.h"

/* --- what is built in: nothing yet ------------------------------------------------------------ */

const struct cpu_events known_cpus[] = {};
const size_t nr_known_cpus;
const struct known_metric generic_metrics[] = {};
const size_t nr_generic_metrics;
const struct known_source known_sources[] = {};
const size_t nr_known_sources;

static struct embedded schema;

/* The only file that the reader asks for is the form of the tables. */
struct embedded embedded_find(const char *name)
{
	return schema;
}

/* --- how structs are written ------------------------------------------------------------------ */

enum kind { TEXT, UNSIGNED, SIGNED, TEXTS, LIST, ONE };

struct member {
	enum kind kind;
	const char *name;
	size_t offset;
	size_t size;		 /* of UNSIGNED */
	size_t nr;		 /* of TEXTS and LIST: where their number is */
	const struct layout *of; /* of LIST and ONE: what they point at */
};

struct layout {
	const char *type;
	size_t size;
	const struct member *members;
	size_t nr;
};

/*
 * The members of each struct, all of them and in their order. X is ROW_ for the layout's rows, or ZERO_ for
 * an initialiser of zeros, which the compiler refuses where a member of the struct is not named here.
 */
#define known_event_MEMBERS(X, type)                                                                         \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, description), X##VALUE(TEXT, type, topic),          \
		X##VALUE(UNSIGNED, type, config), X##VALUE(UNSIGNED, type, config1),                         \
		X##VALUE(UNSIGNED, type, default_period), X##VALUE(UNSIGNED, type, counters),                \
		X##VALUE(SIGNED, type, fixed_counter), X##VALUE(UNSIGNED, type, precise),                    \
		X##VALUE(SIGNED, type, architectural), X##VALUE(UNSIGNED, type, umask_field),                \
		X##VALUE(TEXT, type, errata), X##VALUE(TEXT, type, source)
#define known_alias_MEMBERS(X, type)                                                                         \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, of), X##VALUE(TEXT, type, source)
#define offcore_register_MEMBERS(X, type)                                                                    \
	X##VALUE(TEXT, type, name), X##VALUE(UNSIGNED, type, config), X##VALUE(UNSIGNED, type, msr),         \
		X##VALUE(UNSIGNED, type, counters)
#define offcore_part_MEMBERS(X, type)                                                                        \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, description), X##VALUE(UNSIGNED, type, bits),       \
		X##VALUE(UNSIGNED, type, kinds)
#define offcore_preset_MEMBERS(X, type)                                                                      \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, requests), X##VALUE(TEXT, type, responses)
#define known_offcore_MEMBERS(X, type)                                                                       \
	X##LIST(LIST, type, registers, &offcore_register_layout),                                            \
		X##LIST(LIST, type, requests, &offcore_part_layout),                                         \
		X##LIST(LIST, type, responses, &offcore_part_layout),                                        \
		X##LIST(LIST, type, presets, &offcore_preset_layout),                                        \
		X##LIST(LIST, type, aliases, &known_alias_layout), X##VALUE(UNSIGNED, type, reserved),       \
		X##VALUE(UNSIGNED, type, ignored), X##VALUE(TEXT, type, ignored_source),                     \
		X##VALUE(UNSIGNED, type, default_period), X##VALUE(TEXT, type, source)
#define known_data_source_MEMBERS(X, type)                                                                   \
	X##VALUE(UNSIGNED, type, code), X##VALUE(UNSIGNED, type, reserved), X##VALUE(TEXT, type, name),      \
		X##VALUE(TEXT, type, description), X##VALUE(UNSIGNED, type, perf_data_src),                  \
		X##VALUE(TEXT, type, perf)
#define known_branch_kind_MEMBERS(X, type)                                                                   \
	X##VALUE(TEXT, type, filter), X##VALUE(UNSIGNED, type, records), X##VALUE(TEXT, type, note),         \
		X##VALUE(TEXT, type, why), X##VALUE(TEXT, type, source), X##VALUE(TEXT, type, remedy)
#define kernel_rule_MEMBERS(X, type)                                                                         \
	X##VALUE(UNSIGNED, type, mask), X##VALUE(UNSIGNED, type, config),                                    \
		X##VALUE(UNSIGNED, type, counters), X##VALUE(SIGNED, type, fixed_counter),                   \
		X##VALUE(UNSIGNED, type, exclusive), X##VALUE(UNSIGNED, type, several)
#define known_generic_MEMBERS(X, type)                                                                       \
	X##VALUE(TEXT, type, name), X##VALUE(UNSIGNED, type, config), X##VALUE(UNSIGNED, type, config1),     \
		X##VALUE(TEXT, type, note)
#define known_erratum_MEMBERS(X, type)                                                                       \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, description), X##VALUE(UNSIGNED, type, all_events)
#define known_microcode_MEMBERS(X, type)                                                                     \
	X##VALUE(UNSIGNED, type, model), X##VALUE(UNSIGNED, type, stepping),                                 \
		X##VALUE(UNSIGNED, type, revision)
#define known_kernel_MEMBERS(X, type)                                                                        \
	X##LIST(LIST, type, precise, &kernel_rule_layout), X##LIST(LIST, type, placed, &kernel_rule_layout), \
		X##LIST(LIST, type, generic, &known_generic_layout),                                         \
		X##LIST(LIST, type, errata, &known_erratum_layout), X##VALUE(UNSIGNED, type, lowest_period), \
		X##VALUE(UNSIGNED, type, beyond_period), X##VALUE(UNSIGNED, type, access_bits),              \
		X##VALUE(UNSIGNED, type, own_registers), X##VALUE(UNSIGNED, type, precise_cycles),           \
		X##VALUE(TEXT, type, record), X##LIST(LIST, type, microcode, &known_microcode_layout),       \
		X##VALUE(TEXT, type, source)
#define unit_number_MEMBERS(X, type) X##VALUE(TEXT, type, name), X##VALUE(UNSIGNED, type, value)
#define unit_field_MEMBERS(X, type)                                                                          \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, title), X##VALUE(TEXT, type, description),          \
		X##VALUE(UNSIGNED, type, low), X##VALUE(UNSIGNED, type, high), X##VALUE(TEXT, type, usual),  \
		X##VALUE(TEXT, type, usual_smt), X##VALUE(UNSIGNED, type, sets),                             \
		X##LIST(LIST, type, values, &unit_number_layout)
#define unit_start_MEMBERS(X, type) X##VALUE(UNSIGNED, type, counter), X##VALUE(TEXT, type, by)
#define unit_counter_MEMBERS(X, type)                                                                        \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, cccr), X##VALUE(UNSIGNED, type, msr),               \
		X##VALUE(UNSIGNED, type, cccr_msr), X##LIST(LIST, type, after, &unit_start_layout),          \
		X##VALUE(TEXT, type, unusable)
#define unit_escr_MEMBERS(X, type)                                                                           \
	X##VALUE(TEXT, type, name), X##VALUE(UNSIGNED, type, msr), X##VALUE(UNSIGNED, type, counters)
#define unit_metric_MEMBERS(X, type)                                                                         \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, description), X##VALUE(UNSIGNED, type, enable),     \
		X##VALUE(UNSIGNED, type, matrix)
#define unit_kind_MEMBERS(X, type)                                                                           \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, description), X##VALUE(UNSIGNED, type, always),     \
		X##LIST(LIST, type, counters, &unit_number_layout),                                          \
		X##LIST(LIST, type, fields, &unit_field_layout),                                             \
		X##LIST(LIST, type, escrs, &unit_escr_layout),                                               \
		X##LIST(LIST, type, metrics, &unit_metric_layout)
#define known_unit_MEMBERS(X, type)                                                                          \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, description), X##VALUE(TEXT, type, source),         \
		X##VALUE(UNSIGNED, type, scope), X##VALUE(UNSIGNED, type, count_bits),                       \
		X##VALUE(UNSIGNED, type, wraps_in_ms), X##VALUE(UNSIGNED, type, rdpmc),                      \
		X##VALUE(TEXT, type, control), X##VALUE(UNSIGNED, type, control_msr),                        \
		X##VALUE(UNSIGNED, type, freeze), X##VALUE(UNSIGNED, type, unfreeze),                        \
		X##VALUE(UNSIGNED, type, reset), X##VALUE(UNSIGNED, type, select),                           \
		X##VALUE(UNSIGNED, type, status), X##LIST(LIST, type, counters, &unit_counter_layout),       \
		X##LIST(LIST, type, fields, &unit_field_layout),                                             \
		X##LIST(LIST, type, replay, &unit_number_layout),                                            \
		X##LIST(LIST, type, kinds, &unit_kind_layout)
#define source_claim_MEMBERS(X, type) X##VALUE(TEXT, type, source), X##VALUE(TEXT, type, claim)
#define known_contradiction_MEMBERS(X, type)                                                                 \
	X##VALUE(TEXT, type, id), X##VALUE(TEXT, type, subject), X##LIST(TEXTS, type, names, NULL),          \
		X##LIST(LIST, type, says, &source_claim_layout), X##VALUE(TEXT, type, we_do),                \
		X##VALUE(TEXT, type, why)
#define known_metric_MEMBERS(X, type)                                                                        \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, formula), X##VALUE(TEXT, type, unit),               \
		X##VALUE(TEXT, type, description), X##VALUE(TEXT, type, source)
#define known_share_MEMBERS(X, type)                                                                         \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, parent), X##VALUE(TEXT, type, description),         \
		X##VALUE(TEXT, type, formula), X##VALUE(UNSIGNED, type, cost_low),                           \
		X##VALUE(UNSIGNED, type, cost), X##VALUE(UNSIGNED, type, cost_high),                         \
		X##VALUE(UNSIGNED, type, estimated), X##VALUE(UNSIGNED, type, explained),                    \
		X##VALUE(UNSIGNED, type, beside), X##VALUE(UNSIGNED, type, unmodelled),                      \
		X##VALUE(UNSIGNED, type, of_time), X##VALUE(UNSIGNED, type, in_latency),                     \
		X##VALUE(TEXT, type, sources), X##VALUE(TEXT, type, meaning), X##VALUE(TEXT, type, locate),  \
		X##VALUE(TEXT, type, source)
#define known_identity_MEMBERS(X, type)                                                                      \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, left), X##VALUE(TEXT, type, right),                 \
		X##VALUE(UNSIGNED, type, percent), X##VALUE(TEXT, type, withdraws),                          \
		X##VALUE(TEXT, type, source)
#define cpu_model_MEMBERS(X, type)	 X##VALUE(UNSIGNED, type, family), X##VALUE(UNSIGNED, type, model)
#define known_processor_MEMBERS(X, type) X##VALUE(TEXT, type, pattern)
#define known_section_MEMBERS(X, type)	 X##VALUE(TEXT, type, facility), X##VALUE(TEXT, type, number)
#define cpu_events_MEMBERS(X, type)                                                                          \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, title), X##VALUE(TEXT, type, vendor),               \
		X##VALUE(TEXT, type, libpfm4), X##LIST(LIST, type, processors, &known_processor_layout),     \
		X##LIST(LIST, type, models, &cpu_model_layout), X##VALUE(UNSIGNED, type, third_level_cache), \
		X##VALUE(UNSIGNED, type, perfmon), X##LIST(LIST, type, guide, &known_section_layout),        \
		X##VALUE(UNSIGNED, type, branch_depth), X##VALUE(UNSIGNED, type, general_counters),          \
		X##VALUE(UNSIGNED, type, fixed_counters), X##VALUE(UNSIGNED, type, general_counters_smt),    \
		X##VALUE(TEXT, type, loads), X##VALUE(TEXT, type, stores),                                   \
		X##VALUE(UNSIGNED, type, precise_store), X##VALUE(UNSIGNED, type, load_latency),             \
		X##VALUE(UNSIGNED, type, latency_least), X##VALUE(UNSIGNED, type, latency_most),             \
		X##VALUE(TEXT, type, latency_source), X##VALUE(UNSIGNED, type, cmask_most),                  \
		X##VALUE(TEXT, type, cmask_source), X##LIST(LIST, type, events, &known_event_layout),        \
		X##LIST(LIST, type, aliases, &known_alias_layout),                                           \
		X##ONE(type, offcore, &known_offcore_layout), X##ONE(type, kernel, &known_kernel_layout),    \
		X##LIST(LIST, type, data_sources, &known_data_source_layout),                                \
		X##LIST(LIST, type, branches, &known_branch_kind_layout),                                    \
		X##LIST(LIST, type, units, &known_unit_layout),                                              \
		X##LIST(LIST, type, contradictions, &known_contradiction_layout),                            \
		X##LIST(LIST, type, metrics, &known_metric_layout),                                          \
		X##LIST(LIST, type, shares, &known_share_layout),                                            \
		X##LIST(LIST, type, identities, &known_identity_layout)
#define known_source_MEMBERS(X, type) X##VALUE(TEXT, type, key), X##VALUE(TEXT, type, title)

#define ROW_VALUE(which, type, member)                                                                       \
	{                                                                                                    \
		.kind = which, .name = #member, .offset = offsetof(struct type, member),                     \
		.size = sizeof(((struct type *)0)->member)                                                   \
	}
#define ROW_LIST(which, type, member, layout)                                                                \
	{                                                                                                    \
		.kind = which, .name = #member, .offset = offsetof(struct type, member),                     \
		.nr = offsetof(struct type, nr_##member), .of = layout                                       \
	}
#define ROW_ONE(type, member, layout)                                                                        \
	{                                                                                                    \
		.kind = ONE, .name = #member, .offset = offsetof(struct type, member), .of = layout          \
	}
#define ZERO_VALUE(which, type, member)	       0
#define ZERO_LIST(which, type, member, layout) 0, 0
#define ZERO_ONE(type, member, layout)	       0

#define LAYOUT(type)                                                                                         \
	static const struct member type##_rows[] = {type##_MEMBERS(ROW_, type)};                             \
	static const struct layout type##_layout = {"struct " #type, sizeof(struct type), type##_rows,       \
						    ARRAY_SIZE(type##_rows)};                                \
	static const struct type type##_zero __attribute__((unused)) = {type##_MEMBERS(ZERO_, type)}

#pragma GCC diagnostic error "-Wmissing-field-initializers"
LAYOUT(known_event);
LAYOUT(known_alias);
LAYOUT(offcore_register);
LAYOUT(offcore_part);
LAYOUT(offcore_preset);
LAYOUT(known_offcore);
LAYOUT(known_data_source);
LAYOUT(known_branch_kind);
LAYOUT(kernel_rule);
LAYOUT(known_generic);
LAYOUT(known_erratum);
LAYOUT(known_microcode);
LAYOUT(known_kernel);
LAYOUT(unit_number);
LAYOUT(unit_field);
LAYOUT(unit_start);
LAYOUT(unit_counter);
LAYOUT(unit_escr);
LAYOUT(unit_metric);
LAYOUT(unit_kind);
LAYOUT(known_unit);
LAYOUT(source_claim);
LAYOUT(known_contradiction);
LAYOUT(known_metric);
LAYOUT(known_share);
LAYOUT(known_identity);
LAYOUT(cpu_model);
LAYOUT(known_section);
LAYOUT(known_processor);
LAYOUT(cpu_events);
LAYOUT(known_source);

/* --- writing ---------------------------------------------------------------------------------- */

static unsigned long long number_at(const char *at, size_t size)
{
	unsigned long long value = 0;

	memcpy(&value, at, size); /* x86 begins with the lowest byte */
	return value;
}

static void write_text(FILE *out, const char *text)
{
	if (!text) {
		fputs("NULL", out);
		return;
	}
	fputc('"', out);
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < ' ')
			fprintf(out, "\\%03o", *text);
		else
			fputc(*text, out); /* UTF-8, as the compiler has it */
	fputc('"', out);
}

static void *pointer_at(const char *at)
{
	void *pointer;

	memcpy(&pointer, at, sizeof(pointer));
	return pointer;
}

static void define(FILE *out, const struct layout *layout, const char *rows, size_t nr, const char *name);

/* The name of what a row's member points at. */
static const char *name_of(char *buffer, size_t size, const char *owner, size_t row, const char *member)
{
	snprintf(buffer, size, "%s_%zu_%s", owner, row, member);
	return buffer;
}

static void define_texts(FILE *out, const char *const *texts, size_t nr, const char *name)
{
	fprintf(out, "static const char *const %s[] = {", name);
	for (size_t i = 0; i < nr; i++) {
		write_text(out, texts[i]);
		fputs(", ", out);
	}
	fputs("};\n", out);
}

/* What rows point at comes before them. */
static void define_members(FILE *out, const struct layout *layout, const char *row, size_t number,
			   const char *owner)
{
	char name[256];

	for (size_t i = 0; i < layout->nr; i++) {
		const struct member *member = &layout->members[i];
		const void *of = member->kind >= TEXTS ? pointer_at(row + member->offset) : NULL;
		size_t nr = member->kind == ONE ? 1 : number_at(row + member->nr, sizeof(size_t));

		if (!of || !nr)
			continue;
		name_of(name, sizeof(name), owner, number, member->name);
		if (member->kind == TEXTS)
			define_texts(out, of, nr, name);
		else
			define(out, member->of, of, nr, name);
	}
}

static void write_member(FILE *out, const struct member *member, const char *row, size_t number,
			 const char *owner)
{
	const char *at = row + member->offset;
	bool several = member->kind == TEXTS || member->kind == LIST;
	size_t nr = several ? number_at(row + member->nr, sizeof(size_t)) : 1;
	char name[256];

	if (member->kind == TEXT) {
		write_text(out, pointer_at(at));
	} else if (member->kind == UNSIGNED) {
		fprintf(out, "%#llx", number_at(at, member->size));
	} else if (member->kind == SIGNED) {
		fprintf(out, "%d", (signed char)*at);
	} else if (pointer_at(at) && nr) {
		fputs(name_of(name, sizeof(name), owner, number, member->name), out);
	} else {
		fputs("NULL", out);
	}
	if (several)
		fprintf(out, ", .nr_%s = %zu", member->name, nr);
}

static void write_rows(FILE *out, const struct layout *layout, const char *rows, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++) {
		fputs("\t{", out);
		for (size_t m = 0; m < layout->nr; m++) {
			fprintf(out, "%s.%s = ", m ? ", " : "", layout->members[m].name);
			write_member(out, &layout->members[m], rows + i * layout->size, i, name);
		}
		fputs("},\n", out);
	}
}

static void define_rows(FILE *out, const struct layout *layout, const char *rows, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		define_members(out, layout, rows + i * layout->size, i, name);
}

static void define(FILE *out, const struct layout *layout, const char *rows, size_t nr, const char *name)
{
	define_rows(out, layout, rows, nr, name);
	fprintf(out, "static const %s %s[] = {\n", layout->type, name);
	write_rows(out, layout, rows, nr, name);
	fputs("};\n", out);
}

/* An array that the header declares, with its number. */
static void define_public(FILE *out, const struct layout *layout, const void *rows, size_t nr,
			  const char *name)
{
	define_rows(out, layout, rows, nr, name);
	fprintf(out, "const %s %s[] = {\n", layout->type, name);
	write_rows(out, layout, rows, nr, name);
	fprintf(out, "};\nconst size_t nr_%s = %zu;\n", name, nr);
}

/* --- all of it -------------------------------------------------------------------------------- */

/* The documents that may be quoted; the tables have been read, so that this is right as well. */
static void define_sources(FILE *out, const char *folder)
{
	char *path = xasprintf("%s/sources.json", folder);
	json_t *table = json_load_file(path, 0, NULL), *entry;
	struct known_source *rows = xcalloc(json_array_size(table) + 1, sizeof(*rows));
	size_t i;

	json_array_foreach(table, i, entry)
		rows[i] = (struct known_source){json_string_value(json_object_get(entry, "key")),
						json_string_value(json_object_get(entry, "title"))};
	define_public(out, &known_source_layout, rows, json_array_size(table), "known_sources");
	json_decref(table);
	free(rows);
	free(path);
}

static int is_table_or_folder(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return entry->d_name[0] != '.' && entry->d_name[0] != '_' && (!dot || !strcmp(dot, ".json"));
}

/* All tables, and the folders, or a new table would not be noticed. The empty rules let make go on when a
 * table has been removed. */
static void write_inputs(FILE *out, const char *folder, bool rules)
{
	struct dirent **entries;
	int nr = scandir(folder, &entries, is_table_or_folder, alphasort);

	if (nr < 0)
		return;
	fprintf(out, rules ? "%s:\n" : " %s", folder);
	for (int i = 0; i < nr; i++) {
		char *path = xasprintf("%s/%s", folder, entries[i]->d_name);

		if (strchr(entries[i]->d_name, '.'))
			fprintf(out, rules ? "%s:\n" : " %s", path);
		else
			write_inputs(out, path, rules);
		free(path);
		free(entries[i]);
	}
	free(entries);
}

static int write_depfile(const char *path, const char *output, const char *folder)
{
	FILE *out = fopen(path, "we");

	if (!out)
		return -1;
	fprintf(out, "%s:", output);
	write_inputs(out, folder, false);
	fputc('\n', out);
	write_inputs(out, folder, true);
	return fclose(out);
}

static int write_tables(const struct tables *tables, const char *folder, const char *path)
{
	FILE *out = fopen(path, "we");

	if (!out)
		return -1;
	fputs("/* Written by events/compile.c from the tables beside it: change those. */\n"
	      "#include \"tables/known_event.h\"\n",
	      out);
	define_public(out, &cpu_events_layout, tables->cpus, tables->nr_cpus, "known_cpus");
	define_public(out, &known_metric_layout, tables->metrics, tables->nr_metrics, "generic_metrics");
	define_sources(out, folder);
	return fclose(out);
}

static void read_schema(const char *folder)
{
	char *path = xasprintf("%s/schema.json", folder);
	FILE *file = fopen(path, "re");
	struct stat facts;

	if (!file || fstat(fileno(file), &facts)) {
		perror(path);
		exit(1);
	}
	schema.data = xcalloc(1, facts.st_size + 1);
	schema.size = fread((void *)schema.data, 1, facts.st_size, file);
	fclose(file);
	free(path);
}

/* The form of the tables is in the folder that this is in, whichever it reads. */
#ifndef FORM_FOLDER
#define FORM_FOLDER "events"
#endif

int main(int argc, char **argv)
{
	struct tables tables;
	struct refusal refusal = {0};
	int err;

	if ((argc != 4 && argc != 6) || strcmp(argv[2], "-o") ||
	    (argc == 6 && strcmp(argv[4], "--depfile"))) {
		fprintf(stderr, "usage: %s FOLDER -o FILE.c [--depfile FILE.d]\n", argv[0]);
		return 1;
	}
	read_schema(FORM_FOLDER);
	err = tables_load(&tables, argv[1], &refusal);
	if (err) {
		fprintf(stderr, "%s: %s\n", refusal.asked, refusal.why);
	} else if (write_tables(&tables, argv[1], argv[3]) ||
		   (argc == 6 && write_depfile(argv[5], argv[3], argv[1]))) {
		perror(argv[3]);
		err = 1;
	}
	tables_release(&tables);
	free((void *)schema.data);
	return err ? 1 : 0;
}
