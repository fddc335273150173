// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap schema [TYPE]: the JSON Schema of a record type, or of all of them, as one document. Schemas that it
 * refers to are included in its $defs, each with its own $id (JSON Schema 2020-12, section 9.3.1). */
#include <stdio.h>
#include <string.h>
#include <jansson.h>

#include "base/alternatives.h"
#include "base/array.h"
#include "base/embedded.h"
#include "option/command.h"
#include "run/config.h"

#define SUFFIX	      ".schema.json"
#define SHARED_SCHEMA "common"

/* "count.schema.json" → "count"; NULL for a file that is no schema of a type. */
static const char *type_of(const struct embedded *file, char *type, size_t size)
{
	const char *suffix = strstr(file->name, SUFFIX);

	if (!suffix || suffix[strlen(SUFFIX)])
		return NULL;
	snprintf(type, size, "%.*s", (int)(suffix - file->name), file->name);
	return type;
}

static bool is_record(const char *type)
{
	return strcmp(type, SHARED_SCHEMA) && strcmp(type, "config");
}

/* Adds the names of the commands that write a start record. */
static void complete_start(json_t *schema)
{
	json_t *names = json_pack("[s, s]", "doctor", "run");
	const struct command *command;

	for (size_t i = 0; (command = command_at(i)) && command->activity; i++)
		json_array_append_new(names, json_string(command->name));
	json_object_set_new(json_object_get(json_object_get(schema, "properties"), "command"), "enum", names);
}

/* Parts of schemas that depend on the list of commands are not in the files; they are added here. */
static const struct {
	const char *type;
	void (*complete)(json_t *schema);
} completed[] = {
	{"start", complete_start},
	{"config", config_complete_schema},
};

/* Returns a new reference, NULL if there is no schema of this name. */
static json_t *schema_of(const char *type)
{
	char name[64];
	struct embedded file;
	json_t *schema;

	snprintf(name, sizeof(name), "%.40s" SUFFIX, type);
	file = embedded_find(name);
	schema = file.name ? json_loadb(file.data, file.size, 0, NULL) : NULL;
	for (size_t i = 0; schema && i < ARRAY_SIZE(completed); i++)
		if (!strcmp(completed[i].type, type))
			completed[i].complete(schema);
	return schema;
}

static json_t *schema_of_all(void)
{
	json_t *any = json_array(), *definitions = json_object();
	struct embedded file;
	char type[64];

	for (size_t i = 0; (file = embedded_at(i)).name; i++) {
		if (!type_of(&file, type, sizeof(type)))
			continue;
		if (!strcmp(type, "config"))
			continue;
		json_object_set_new(definitions, type, schema_of(type));
		if (is_record(type))
			json_array_append_new(any, json_pack("{s:s}", "$ref", file.name));
	}
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "$schema",
			 "https://json-schema.org/draft/2020-12/schema", "$id",
			 "https://nhmtap.example/schema/" SCHEMA_VERSION "/record" SUFFIX, "title", "Record",
			 "anyOf", any, "$defs", definitions);
}

static int refuse_type(const char *wanted, struct refusal *refusal)
{
	struct alternatives alternatives;
	json_t *types = json_array();
	struct embedded file;
	char type[64];

	alternatives_begin(&alternatives, wanted, strlen(wanted));
	for (size_t i = 0; (file = embedded_at(i)).name; i++) {
		if (!type_of(&file, type, sizeof(type)) || !strcmp(type, SHARED_SCHEMA))
			continue;
		json_array_append_new(types, json_string(type));
		alternatives_offer(&alternatives,
				   json_string_value(json_array_get(types, json_array_size(types) - 1)));
	}
	refuse(refusal, STATUS_USAGE, "schema '%s'", wanted);
	because(refusal, "there is no record of this type");
	alternatives_end(&alternatives, refusal, "types: %s", alternatives.all);
	json_decref(types);
	return STATUS_USAGE;
}

static int run(const struct options *options, struct refusal *refusal)
{
	const char *wanted = options->nr_rest ? options->rest[0] : NULL;
	json_t *schema;

	if (wanted && !strcmp(wanted, SHARED_SCHEMA))
		return refuse_type(wanted, refusal);
	schema = wanted ? schema_of(wanted) : schema_of_all();
	if (!schema)
		return refuse_type(wanted, refusal);
	if (wanted && is_record(wanted))
		json_object_set_new(schema, "$defs",
				    json_pack("{s:o}", SHARED_SCHEMA, schema_of(SHARED_SCHEMA)));
	json_dumpf(schema, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(schema);
	return STATUS_DONE;
}

static const struct command schema = {
	.name = "schema",
	.arguments = "[TYPE]",
	.help = "prints the JSON Schema of a record type, or of all",
	.options = {help_rows},
	.run = run,
};
REGISTER_COMMAND(schema);
