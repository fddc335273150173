/* SPDX-License-Identifier: GPL-2.0-only */
/* Which CPUs and cgroups of the target an interval lacks. */
#pragma once

#include <jansson.h>

#include "base/cpus.h"

struct activity;

/* Value of cpus_missing: those of these CPUs (NULL: of all that are measured) that were offline for some of
 * the interval. Returns NULL if there are none. */
json_t *activity_missing(const struct activity *activity, const struct cpus *of);

/* Value of cgroups_missing: the same for cgroups of the target. `of`: index of the only cgroup to consider;
 * -1: all. */
json_t *activity_cgroups_missing(const struct activity *activity, int of);

/* Adds both. */
void activity_put_missing(const struct activity *activity, json_t *record, const struct cpus *of, int cgroup);
