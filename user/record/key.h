/* SPDX-License-Identifier: GPL-2.0-only */
/* Members of an aggregation's keys and values, as values of a record. How a member is written follows from
 * its type's name in BTF. */
#ifndef NHMTAP_KEY_H
#define NHMTAP_KEY_H

#include <jansson.h>

#include "aggregation/aggregation.h"
#include "host/host.h"

/* The value of a member of the key or value that begins at `base`. Numbers of cgroups, sources and the like
 * get their names from the host. Returns a new reference. */
json_t *member_value(const struct host *host, const struct member *member, const void *base);

/* The number of the key's member of up to 8 bytes. */
__u64 member_number(const struct member *member, const void *key);

/* The comm in an entry's key, of 16 bytes; NULL if it is not one of this run's keys. */
const char *key_comm(const struct layout *layout, const void *key);

#endif
