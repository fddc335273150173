// SPDX-License-Identifier: GPL-2.0-only
#include "host/cgroup_pattern.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

bool cgroup_is_pattern(const char *name)
{
	return strpbrk(name, "*?[");
}

/* The length of the part of a path at `at`. */
static size_t part_length(const char *at)
{
	return strcspn(at, "/");
}

static const char *next_part(const char *at)
{
	at += part_length(at);
	return at + strspn(at, "/");
}

static bool part_fits(const char *pattern, const char *path)
{
	char wanted[256], there[256];

	snprintf(wanted, sizeof(wanted), "%.*s", (int)part_length(pattern), pattern);
	snprintf(there, sizeof(there), "%.*s", (int)part_length(path), path);
	return !fnmatch(wanted, there, 0);
}

static bool is_any(const char *pattern)
{
	return part_length(pattern) == 2 && !strncmp(pattern, "**", 2);
}

/* Matches part by part. `below`: whether the pattern could match some cgroup below the path instead. */
static bool fits_parts(const char *pattern, const char *path, bool below)
{
	for (; *pattern; pattern = next_part(pattern), path = next_part(path)) {
		if (is_any(pattern) && below)
			return true;
		if (is_any(pattern) && !*next_part(pattern))
			return *path;
		if (is_any(pattern))
			return fits_parts(next_part(pattern), path, false) ||
			       (*path && fits_parts(pattern, next_part(path), false));
		if (!*path)
			return below;
		if (!part_fits(pattern, path))
			return false;
	}
	return !*path && !below;
}

bool cgroup_fits(const char *pattern, const char *path)
{
	return fits_parts(pattern + strspn(pattern, "/"), path + strspn(path, "/"), false);
}

bool cgroup_may_fit_below(const char *pattern, const char *path)
{
	return fits_parts(pattern + strspn(pattern, "/"), path + strspn(path, "/"), true);
}

size_t cgroup_pattern_root(const char *pattern)
{
	size_t length = strcspn(pattern, "*?[");

	while (length && pattern[length - 1] != '/')
		length--;
	return length ? length - 1 : 0;
}
