// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap schema [TYPE]: the JSON Schemas of the records, as they are built in. */
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "embedded.h"

#define SUFFIX ".schema.json"

/* "count.schema.json" → "count"; NULL for files of other kinds. */
static const char *type_of(const struct embedded *file, char *type, size_t size)
{
	const char *suffix = strstr(file->name, SUFFIX);

	if (!suffix || suffix[strlen(SUFFIX)])
		return NULL;
	snprintf(type, size, "%.*s", (int)(suffix - file->name), file->name);
	return type;
}

static int refuse_type(const char *wanted, struct refusal *refusal)
{
	char known[256] = "", type[64];
	size_t used = 0;
	struct embedded file;

	for (size_t i = 0; (file = embedded_at(i)).name; i++)
		if (type_of(&file, type, sizeof(type)))
			used += snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "",
					 type);
	refuse(refusal, STATUS_USAGE, "schema '%s'", wanted);
	because(refusal, "there is no record of this type");
	instead(refusal, "types: %s", known);
	return STATUS_USAGE;
}

int command_schema(const struct options *options, struct refusal *refusal)
{
	const char *wanted = options->nr_rest ? options->rest[0] : "record";
	char name[64];
	struct embedded file;

	snprintf(name, sizeof(name), "%.40s" SUFFIX, wanted);
	file = embedded_find(name);
	if (!file.name)
		return refuse_type(wanted, refusal);
	fwrite(file.data, 1, file.size, stdout);
	if (fflush(stdout)) {
		refuse(refusal, STATUS_PARTIAL, "writing to stdout");
		because(refusal, "it can't be written");
		return STATUS_PARTIAL;
	}
	return STATUS_DONE;
}
