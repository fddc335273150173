/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Patterns of cgroups' paths: '*', '?' and [a-z] stand for something in one part of the path, and a part '**'
 * for any number of parts; at the end, for at least one.
 */
#ifndef NHMTAP_CGROUP_PATTERN_H
#define NHMTAP_CGROUP_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a name is a pattern and not a path. */
bool cgroup_is_pattern(const char *name);

/* Whether a pattern is one of this path, both from the mount on: "/system.slice/" "*.service". */
bool cgroup_fits(const char *pattern, const char *path);

/* Whether it may fit one below this path. */
bool cgroup_may_fit_below(const char *pattern, const char *path);

/* How many bytes at the pattern's beginning are the path of a cgroup in which all are that may fit; 0: the
 * root. */
size_t cgroup_pattern_root(const char *pattern);

#endif
