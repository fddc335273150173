/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include <string.h>

/* A path's last part, within the path; the whole if it has no slash or ends in one. */
static inline const char *path_last(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}
