// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes the tables of this folder as one C file for user/tables/known_event.h. They are read by what reads
 * --events-dir while the program runs (user/tables/tables.h), here with nothing built in: one reader judges
 * both. A fault is told with its file and entry, and nothing is written.
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

#include "embedded.h"
#include "memory.h"
#include "tables/known_event.h"
#include "tables/tables.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

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
	size_t offset, size;
	size_t nr;		 /* of TEXTS and LIST: where their number is */
	const struct layout *of; /* of LIST and ONE: what they point at */
};

struct layout {
	const char *type;
	size_t size;
	const struct member *members;
	size_t nr;
};

#define MEMBER(type, which, member)                                                                          \
	{                                                                                                    \
		.kind = which, .name = #member, .offset = offsetof(struct type, member),                     \
		.size = sizeof(((struct type *)0)->member)                                                   \
	}
#define HAS(type, which, member, layout)                                                                     \
	{                                                                                                    \
		.kind = which, .name = #member, .offset = offsetof(struct type, member),                     \
		.size = sizeof(void *), .nr = offsetof(struct type, nr_##member), .of = layout               \
	}
#define POINTS(type, member, layout)                                                                         \
	{                                                                                                    \
		.kind = ONE, .name = #member, .offset = offsetof(struct type, member),                       \
		.size = sizeof(void *), .of = layout                                                         \
	}
#define LAYOUT(name, type, ...)                                                                              \
	static const struct member name##_members[] = {__VA_ARGS__};                                         \
	static const struct layout name = {"struct " #type, sizeof(struct type), name##_members,             \
					   COUNT(name##_members)}

LAYOUT(event, known_event, MEMBER(known_event, TEXT, name), MEMBER(known_event, TEXT, description),
       MEMBER(known_event, TEXT, topic), MEMBER(known_event, UNSIGNED, config),
       MEMBER(known_event, UNSIGNED, config1), MEMBER(known_event, UNSIGNED, default_period),
       MEMBER(known_event, UNSIGNED, counters), MEMBER(known_event, SIGNED, fixed_counter),
       MEMBER(known_event, UNSIGNED, precise), MEMBER(known_event, TEXT, errata),
       MEMBER(known_event, TEXT, source));
LAYOUT(alias, known_alias, MEMBER(known_alias, TEXT, name), MEMBER(known_alias, TEXT, of),
       MEMBER(known_alias, TEXT, source));
LAYOUT(reg, offcore_register, MEMBER(offcore_register, TEXT, name),
       MEMBER(offcore_register, UNSIGNED, config), MEMBER(offcore_register, UNSIGNED, msr),
       MEMBER(offcore_register, UNSIGNED, counters));
LAYOUT(part, offcore_part, MEMBER(offcore_part, TEXT, name), MEMBER(offcore_part, TEXT, description),
       MEMBER(offcore_part, UNSIGNED, bits), MEMBER(offcore_part, UNSIGNED, kinds));
LAYOUT(preset, offcore_preset, MEMBER(offcore_preset, TEXT, name), MEMBER(offcore_preset, TEXT, requests),
       MEMBER(offcore_preset, TEXT, responses));
LAYOUT(offcore, known_offcore, HAS(known_offcore, LIST, registers, &reg),
       HAS(known_offcore, LIST, requests, &part), HAS(known_offcore, LIST, responses, &part),
       HAS(known_offcore, LIST, presets, &preset), HAS(known_offcore, LIST, aliases, &alias),
       MEMBER(known_offcore, UNSIGNED, reserved), MEMBER(known_offcore, UNSIGNED, default_period),
       MEMBER(known_offcore, TEXT, source));
LAYOUT(data_source, known_data_source, MEMBER(known_data_source, UNSIGNED, code),
       MEMBER(known_data_source, UNSIGNED, reserved), MEMBER(known_data_source, TEXT, name),
       MEMBER(known_data_source, TEXT, description), MEMBER(known_data_source, UNSIGNED, perf_data_src),
       MEMBER(known_data_source, TEXT, perf));
LAYOUT(branch_kind, known_branch_kind, MEMBER(known_branch_kind, TEXT, filter),
       MEMBER(known_branch_kind, UNSIGNED, records), MEMBER(known_branch_kind, TEXT, note),
       MEMBER(known_branch_kind, TEXT, why), MEMBER(known_branch_kind, TEXT, source),
       MEMBER(known_branch_kind, TEXT, remedy));
LAYOUT(rule, kernel_rule, MEMBER(kernel_rule, UNSIGNED, mask), MEMBER(kernel_rule, UNSIGNED, config),
       MEMBER(kernel_rule, UNSIGNED, counters), MEMBER(kernel_rule, SIGNED, fixed_counter),
       MEMBER(kernel_rule, UNSIGNED, exclusive));
LAYOUT(generic, known_generic, MEMBER(known_generic, TEXT, name), MEMBER(known_generic, UNSIGNED, config),
       MEMBER(known_generic, UNSIGNED, config1), MEMBER(known_generic, TEXT, note));
LAYOUT(erratum, known_erratum, MEMBER(known_erratum, TEXT, name), MEMBER(known_erratum, TEXT, description),
       MEMBER(known_erratum, UNSIGNED, all_events));
LAYOUT(microcode, known_microcode, MEMBER(known_microcode, UNSIGNED, model),
       MEMBER(known_microcode, UNSIGNED, stepping), MEMBER(known_microcode, UNSIGNED, revision));
LAYOUT(kernel, known_kernel, HAS(known_kernel, LIST, precise, &rule), HAS(known_kernel, LIST, placed, &rule),
       HAS(known_kernel, LIST, generic, &generic), HAS(known_kernel, LIST, errata, &erratum),
       MEMBER(known_kernel, UNSIGNED, lowest_period), MEMBER(known_kernel, UNSIGNED, access_bits),
       MEMBER(known_kernel, UNSIGNED, own_registers), MEMBER(known_kernel, UNSIGNED, precise_cycles),
       HAS(known_kernel, LIST, microcode, &microcode), MEMBER(known_kernel, TEXT, source));
LAYOUT(claim, source_claim, MEMBER(source_claim, TEXT, source), MEMBER(source_claim, TEXT, claim));
LAYOUT(contradiction, known_contradiction, MEMBER(known_contradiction, TEXT, id),
       MEMBER(known_contradiction, TEXT, subject), HAS(known_contradiction, TEXTS, names, NULL),
       HAS(known_contradiction, LIST, says, &claim), MEMBER(known_contradiction, TEXT, we_do),
       MEMBER(known_contradiction, TEXT, why));
LAYOUT(metric, known_metric, MEMBER(known_metric, TEXT, name), MEMBER(known_metric, TEXT, formula),
       MEMBER(known_metric, TEXT, unit), MEMBER(known_metric, TEXT, description),
       MEMBER(known_metric, TEXT, source));
LAYOUT(model, cpu_model, MEMBER(cpu_model, UNSIGNED, family), MEMBER(cpu_model, UNSIGNED, model));
LAYOUT(cpu, cpu_events, MEMBER(cpu_events, TEXT, name), MEMBER(cpu_events, TEXT, title),
       MEMBER(cpu_events, TEXT, vendor), MEMBER(cpu_events, TEXT, libpfm4),
       HAS(cpu_events, LIST, models, &model), MEMBER(cpu_events, UNSIGNED, general_counters),
       MEMBER(cpu_events, UNSIGNED, fixed_counters), MEMBER(cpu_events, UNSIGNED, general_counters_smt),
       MEMBER(cpu_events, UNSIGNED, precise_store), MEMBER(cpu_events, UNSIGNED, load_latency),
       HAS(cpu_events, LIST, events, &event), HAS(cpu_events, LIST, aliases, &alias),
       POINTS(cpu_events, offcore, &offcore), POINTS(cpu_events, kernel, &kernel),
       HAS(cpu_events, LIST, data_sources, &data_source), HAS(cpu_events, LIST, branches, &branch_kind),
       HAS(cpu_events, LIST, contradictions, &contradiction), HAS(cpu_events, LIST, metrics, &metric));
LAYOUT(source, known_source, MEMBER(known_source, TEXT, key), MEMBER(known_source, TEXT, title));

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

static size_t most(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Where the next member that is written begins, of those at `from` or behind. */
static size_t next_member(const struct layout *layout, size_t from, size_t *size)
{
	size_t next = layout->size;

	*size = sizeof(void *);
	for (size_t i = 0; i < layout->nr; i++) {
		const struct member *member = &layout->members[i];
		bool several = member->kind == TEXTS || member->kind == LIST;
		size_t at[] = {member->offset, several ? member->nr : layout->size};

		for (size_t j = 0; j < 2; j++)
			if (at[j] >= from && at[j] < next) {
				next = at[j];
				*size = j ? sizeof(size_t) : member->size;
			}
	}
	return next;
}

/* A member that no layout names would be lost without a word. Between those that are named there is room for
 * none but what aligns the next one. */
static void check_whole(const struct layout *layout)
{
	for (size_t at = 0, size; at < layout->size; at = most(next_member(layout, at, &size), at) + size)
		if (next_member(layout, at, &size) - at >= size) {
			fprintf(stderr, "events/compile.c: what is at byte %zu of %s is not written\n", at,
				layout->type);
			exit(1);
		}
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
	check_whole(layout);
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

	json_array_foreach(table, i, entry) rows[i] =
		(struct known_source){json_string_value(json_object_get(entry, "key")),
				      json_string_value(json_object_get(entry, "title"))};
	define_public(out, &source, rows, json_array_size(table), "known_sources");
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
	define_public(out, &cpu, tables->cpus, tables->nr_cpus, "known_cpus");
	define_public(out, &metric, tables->metrics, tables->nr_metrics, "generic_metrics");
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
