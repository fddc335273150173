/* SPDX-License-Identifier: GPL-2.0-only */
/* Members of an aggregation's keys as values of a record, by the type that its BTF names. */
#ifndef NHMTAP_KEY_H
#define NHMTAP_KEY_H

#include <jansson.h>

#include "collection/aggregation.h"

/* The value of a key's member; a new reference. */
json_t *key_value(const struct member *member, const void *key);

#endif
