// SPDX-License-Identifier: GPL-2.0-only
/* The table of list: two columns, names and descriptions. */
#include <stdlib.h>
#include <string.h>

#include "output/table.h"

#define NAME_COLUMN 30

/* perf's own names have no description, because they say what they count. For them the CPU's encoding is
 * shown. */
static void add_meaning(struct text *words, const json_t *record)
{
	const char *config = string(record, "config"), *config1 = string(record, "config1");

	text_add(words, "%s", json_is_true(json_object_get(record, "precise")) ? "[p] " : "");
	if (*string(record, "description"))
		text_add(words, "%s", string(record, "description"));
	else if (*string(record, "terms"))
		text_add(words, "%s", string(record, "terms"));
	else if (*config)
		text_add(words, "config %s%s%s", config, *config1 ? ", config1 " : "", config1);
}

static void add_aliases(struct text *words, const json_t *aliases)
{
	size_t i;
	json_t *alias;

	json_array_foreach(aliases, i, alias)
		text_add(words, "%s%s",
			 i	       ? ", "
			 : words->used ? " (also "
				       : "(also ",
			 json_string_value(alias));
	if (json_array_size(aliases))
		text_add(words, ")");
}

static void listed_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const char *name = string(record, "name");
	int width = strlen(name);
	struct text words = {0};

	add_meaning(&words, record);
	add_aliases(&words, json_object_get(record, "aliases"));
	text_add(text, "  %s", name);
	if (words.used && width > NAME_COLUMN - 4)
		text_add(text, "\n%*s", NAME_COLUMN, "");
	else if (words.used)
		text_add(text, "%*s", NAME_COLUMN - 2 - width, "");
	text_wrap(text, NAME_COLUMN, words.bytes);
	free(words.bytes);
}

REGISTER_TABLE(listed, listed_table);
