/* SPDX-License-Identifier: GPL-2.0-only */
/* Patterns of cgroup paths. '*', '?' and [a-z] match within one part of the path. A part '**' matches any
 * number of parts; at the end of the pattern it matches at least one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether a name is a pattern, rather than a path. */
bool cgroup_is_pattern(const char *name);

/* Whether a pattern matches a path. Both are relative to the mount: "/system.slice/" "*.service". */
bool cgroup_fits(const char *pattern, const char *path);

/* Whether the pattern may match a cgroup below this path. */
bool cgroup_may_fit_below(const char *pattern, const char *path);

/* The length of the part of the pattern that is the path of a cgroup below which all matching cgroups are; 0
 * for the root. */
size_t cgroup_pattern_root(const char *pattern);
