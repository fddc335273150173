/* SPDX-License-Identifier: GPL-2.0-only */
/* Members of an aggregation's keys and values as values of a record, by the type that its BTF names. */
#ifndef NHMTAP_KEY_H
#define NHMTAP_KEY_H

#include <jansson.h>

#include "collection/aggregation.h"
#include "host/host.h"

/* The value of a member of the key or value that begins at `base`; a new reference. The host names
 * what a number alone does not say. */
json_t *member_value(const struct host *host, const struct member *member, const void *base);

/* The comm in an entry's key, of 16 bytes; NULL if it has none in this run. */
const char *key_comm(const struct layout *layout, const void *key);

#endif
