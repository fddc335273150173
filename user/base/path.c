// SPDX-License-Identifier: GPL-2.0-only
#include "base/path.h"

#include <stdio.h>
#include <stdlib.h>

/* Where execvp(3) looks without $PATH: _CS_PATH of the C library. */
#define USUAL "/bin:/usr/bin"

bool path_next(const char **folders, const char *name, char path[PATH_MAX])
{
	const char *at = *folders ? *folders : getenv("PATH") ?: USUAL;
	size_t length = strcspn(at, ":");

	if (!*at)
		return false;
	snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, at, length ? "/" : "", name);
	*folders = at + length + (at[length] == ':');
	return true;
}
