// SPDX-License-Identifier: GPL-2.0-only
#include "base/arguments.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

void arguments_add(struct arguments *arguments, const char *word)
{
	arguments->words =
		xroom(arguments->words, arguments->nr + 1, &arguments->room, sizeof(*arguments->words));
	arguments->words[arguments->nr++] = xstrdup(word);
	arguments->words[arguments->nr] = NULL;
}

void arguments_add_option(struct arguments *arguments, const char *option, const char *value)
{
	if (!value)
		return;
	arguments_add(arguments, option);
	arguments_add(arguments, value);
}

void arguments_add_number(struct arguments *arguments, const char *option, __u64 value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", value);
	arguments_add_option(arguments, option, value ? text : NULL);
}

void arguments_drop(struct arguments *arguments, size_t nr)
{
	while (nr--) {
		free(arguments->words[--arguments->nr]);
		arguments->words[arguments->nr] = NULL;
	}
}

void arguments_release(struct arguments *arguments)
{
	for (size_t i = 0; i < arguments->nr; i++)
		free(arguments->words[i]);
	free(arguments->words);
	*arguments = (struct arguments){0};
}
