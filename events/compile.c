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

#include "base/embedded.h"
#include "base/memory.h"
#include "tables/known_event.h"
#include "tables/row_layout.h"
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

static void define(FILE *out, const struct row_layout *layout, const char *rows, size_t nr, const char *name);

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
static void define_members(FILE *out, const struct row_layout *layout, const char *row, size_t number,
			   const char *owner)
{
	char name[256];

	for (size_t i = 0; i < layout->nr; i++) {
		const struct row_member *member = &layout->members[i];
		const void *of = member->kind >= MEMBER_TEXTS ? pointer_at(row + member->offset) : NULL;
		size_t nr = member->kind == MEMBER_ONE ? 1 : number_at(row + member->nr, sizeof(size_t));

		if (!of || !nr)
			continue;
		name_of(name, sizeof(name), owner, number, member->name);
		if (member->kind == MEMBER_TEXTS)
			define_texts(out, of, nr, name);
		else
			define(out, member->of, of, nr, name);
	}
}

static void write_member(FILE *out, const struct row_member *member, const char *row, size_t number,
			 const char *owner)
{
	const char *at = row + member->offset;
	bool several = member->kind == MEMBER_TEXTS || member->kind == MEMBER_LIST;
	size_t nr = several ? number_at(row + member->nr, sizeof(size_t)) : 1;
	char name[256];

	if (member->kind == MEMBER_TEXT) {
		write_text(out, pointer_at(at));
	} else if (member->kind == MEMBER_UNSIGNED) {
		fprintf(out, "%#llx", number_at(at, member->size));
	} else if (member->kind == MEMBER_SIGNED) {
		fprintf(out, "%d", (signed char)*at);
	} else if (pointer_at(at) && nr) {
		fputs(name_of(name, sizeof(name), owner, number, member->name), out);
	} else {
		fputs("NULL", out);
	}
	if (several)
		fprintf(out, ", .nr_%s = %zu", member->name, nr);
}

static void write_rows(FILE *out, const struct row_layout *layout, const char *rows, size_t nr,
		       const char *name)
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

static void define_rows(FILE *out, const struct row_layout *layout, const char *rows, size_t nr,
			const char *name)
{
	for (size_t i = 0; i < nr; i++)
		define_members(out, layout, rows + i * layout->size, i, name);
}

static void define(FILE *out, const struct row_layout *layout, const char *rows, size_t nr, const char *name)
{
	define_rows(out, layout, rows, nr, name);
	fprintf(out, "static const %s %s[] = {\n", layout->type, name);
	write_rows(out, layout, rows, nr, name);
	fputs("};\n", out);
}

/* An array that the header declares, with its number. */
static void define_public(FILE *out, const struct row_layout *layout, const void *rows, size_t nr,
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
