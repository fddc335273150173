/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <string.h>

/* A path's last part, within the path; the whole if it has no slash or ends in one. */
static inline const char *path_last(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Writes the next place where execvp(3) looks for a command of this name, which has no slash. `folders`: the
 * rest of $PATH; the caller sets it to NULL at first. Returns false if there is no further place. */
bool path_next(const char **folders, const char *name, char path[PATH_MAX]);
