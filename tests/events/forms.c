// SPDX-License-Identifier: GPL-2.0-only
/* Reads lines of a kind of table, or - for the whole schema, and a value, and prints whether
 * user/base/json_schema.c accepts it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "base/json_schema.h"

static struct embedded text;

struct embedded embedded_find(const char *name)
{
	return text;
}

static void read_schema(const char *path)
{
	json_t *document = json_load_file(path, 0, NULL);

	text.data = json_dumps(document, 0);
	text.size = strlen(text.data);
	json_decref(document);
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t size = 0;
	struct json_schema *schema;

	read_schema(argv[1]);
	schema = json_schema_open("schema.json");
	while (getline(&line, &size, stdin) > 0) {
		char *table = strchr(line, ' ');
		struct json_fault fault;
		json_t *value;

		*table++ = '\0';
		value = json_loads(table, JSON_DECODE_ANY, NULL);
		puts(json_schema_check(schema, strcmp(line, "-") ? line : NULL, value, NULL, &fault)
			     ? "wrong"
			     : "right");
		json_decref(value);
	}
	json_schema_close(schema);
	free(line);
	free((void *)text.data);
	return 0;
}
