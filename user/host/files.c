// SPDX-License-Identifier: GPL-2.0-only
#include "host/files.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int slurp(const struct host *host, char *text, size_t size, const char *path, ...)
{
	char full[PATH_MAX];
	size_t used = snprintf(full, sizeof(full), "%s", host->root);
	va_list args;
	FILE *file;

	va_start(args, path);
	vsnprintf(full + used, sizeof(full) - used, path, args);
	va_end(args);
	text[0] = '\0';
	file = fopen(full, "re");
	if (!file)
		return -errno;
	used = fread(text, 1, size - 1, file);
	fclose(file);
	if (used && text[used - 1] == '\n')
		used--;
	text[used] = '\0';
	return used;
}

long slurp_number(const struct host *host, const char *path, long otherwise)
{
	char text[32], *end;
	long value;

	if (slurp(host, text, sizeof(text), "%s", path) <= 0)
		return otherwise;
	value = strtol(text, &end, 10);
	return *end ? otherwise : value;
}

char *line_value(char *text, const char *name, char *value, size_t size)
{
	size_t length = strlen(name);

	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length))
			continue;
		char *at = line + length + strspn(line + length, " \t");

		if (*at != ':')
			continue;
		at += 1 + strspn(at + 1, " \t");
		snprintf(value, size, "%.*s", (int)strcspn(at, "\n"), at);
		return value;
	}
	return NULL;
}
