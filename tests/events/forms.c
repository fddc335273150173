// SPDX-License-Identifier: GPL-2.0-only
/* Reads lines of a kind of table and a table, and prints whether user/tables/form.c accepts it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "tables/form.h"

static struct embedded schema;

struct embedded embedded_find(const char *name)
{
	return schema;
}

static void read_schema(const char *path)
{
	json_t *document = json_load_file(path, 0, NULL);

	schema.data = json_dumps(document, 0);
	schema.size = strlen(schema.data);
	json_decref(document);
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t size = 0;
	struct form *form;

	read_schema(argv[1]);
	form = form_open();
	while (getline(&line, &size, stdin) > 0) {
		char *table = strchr(line, ' ');
		struct form_fault fault;
		json_t *value;

		*table++ = '\0';
		value = json_loads(table, JSON_DECODE_ANY, NULL);
		puts(form_check(form, line, value, &fault) ? "wrong" : "right");
		json_decref(value);
	}
	form_close(form);
	free(line);
	free((void *)schema.data);
	return 0;
}
