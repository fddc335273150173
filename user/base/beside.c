// SPDX-License-Identifier: GPL-2.0-only
#include "base/beside.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool beside_program(char *path, size_t size, const char *const *relative, int mode)
{
	char folder[2048];
	ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
	char *slash;

	folder[length < 0 ? 0 : length] = '\0';
	slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
	for (; *relative; relative++) {
		snprintf(path, size, "%s/%s", folder, *relative);
		if (!access(path, mode))
			return true;
	}
	return false;
}
