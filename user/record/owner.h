/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The owner of a cgroup, as members of records: container.id, container.runtime, k8s.pod.uid, systemd.unit.
 */
#pragma once

#include <jansson.h>

#include "record/fields.h"

/* Add the members that follow from the cgroup's path. Those that do not are left out. */
void owner_add(struct fields *fields, const char *path);
void owner_put(json_t *record, const char *path);
