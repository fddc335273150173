/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads a folder of tables as the program does, and prints it in the format of dump.c:
 * dump_folder SCHEMA FOLDER. */
#define main dump_compiled
#include "dump.c"
#undef main

#include "base/embedded.h"
#include "tables/tables.h"

static struct embedded schema;

/* In the program the schema is built in. */
struct embedded embedded_find(const char *name)
{
	(void)name;
	return schema;
}

static struct embedded read_file(const char *path)
{
	static char text[1 << 20];
	FILE *file = fopen(path, "r");
	struct embedded embedded = {path, text, fread(text, 1, sizeof(text), file)};

	fclose(file);
	return embedded;
}

int main(int argc, char **argv)
{
	struct refusal refusal = {0};
	struct tables tables;

	schema = read_file(argv[argc - 2]);
	if (tables_load(&tables, argv[argc - 1], &refusal)) {
		fprintf(stderr, "%s: %s\n", refusal.asked, refusal.why);
		return 1;
	}
	for (size_t i = 0; i < tables.nr_cpus; i++)
		print_cpu(&tables.cpus[i]);
	print_generic(tables.metrics, tables.nr_metrics);
	tables_release(&tables);
	return 0;
}
