/* SPDX-License-Identifier: GPL-2.0-only */
/* Patterns of cgroup paths. '*', '?' and [a-z] match within one part of the path; a part '**' matches any
 * number of parts, at the end of the pattern at least one. */
#ifndef NHMTAP_CGROUP_PATTERN_H
#define NHMTAP_CGROUP_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a name is a pattern and not a path. */
bool cgroup_is_pattern(const char *name);

/* Whether a pattern is one of this path, both from the mount on: "/system.slice/" "*.service". */
bool cgroup_fits(const char *pattern, const char *path);

/* Whether the pattern may fit a cgroup below this path. */
bool cgroup_may_fit_below(const char *pattern, const char *path);

/* The length of the pattern's beginning that is the path of a cgroup below which all fitting ones are; 0 for
 * the root. */
size_t cgroup_pattern_root(const char *pattern);

#endif
