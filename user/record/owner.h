/* SPDX-License-Identifier: GPL-2.0-only */
/* Whose a cgroup is, in records: container.id, container.runtime, k8s.pod.uid, systemd.unit. */
#ifndef NHMTAP_RECORD_OWNER_H
#define NHMTAP_RECORD_OWNER_H

#include <jansson.h>

#include "record/fields.h"

/* Adds what the path tells of the owner; leaves out the rest. */
void owner_add(struct fields *fields, const char *path);
void owner_put(json_t *record, const char *path);

#endif
