// SPDX-License-Identifier: GPL-2.0-only
#include "base/list.h"

#include <stdio.h>
#include <string.h>

const char *list_next(const char *list, const char *at, size_t *length)
{
	if (!at)
		at = list;
	else
		at = at[*length] ? at + *length + 1 : NULL;
	if (at)
		*length = strcspn(at, ",");
	return at;
}

bool list_has(const char *list, const char *word)
{
	size_t length;

	for (const char *at = NULL; (at = list_next(list, at, &length));)
		if (strlen(word) == length && !strncmp(at, word, length))
			return true;
	return false;
}

void list_append(char *buffer, size_t size, const char *word)
{
	size_t used = strlen(buffer);
	const char *separator = used ? ", " : "";

	if (used >= 3 && !strcmp(buffer + used - 3, "..."))
		return;
	/* After each word there is still room for ", ...". */
	if (used + strlen(separator) + strlen(word) + strlen(", ...") >= size)
		word = "...";
	snprintf(buffer + used, size - used, "%s%s", separator, word);
}

void list_append_all(char *buffer, size_t size, const char *list)
{
	char word[80];
	size_t length;

	for (const char *at = NULL; (at = list_next(list, at, &length));) {
		snprintf(word, sizeof(word), "%.*s", (int)length, at);
		list_append(buffer, size, word);
	}
}
