/* SPDX-License-Identifier: GPL-2.0-only */
/* Entries of an aggregation as values of a record. */
#ifndef NHMTAP_ENTRY_H
#define NHMTAP_ENTRY_H

#include <jansson.h>

#include "collection/aggregation.h"
#include "host/host.h"

/* One entry: the keys in use but a stack (see record/chains.h), then the values. A new reference. */
json_t *entry_value(const struct host *host, const struct layout *layout, const struct entry *entry);

/* Adds the keys of a streamed sample to `record`. */
void put_streamed(json_t *record, const struct host *host, const struct layout *layout, const void *key);

/* The values alone, as members of `record`. */
void put_values(json_t *record, const struct host *host, const struct layout *layout, const __u64 *values);

/* Adds values to a sum of layout.value_size bytes: of maxima, the larger one stays. */
void values_add(const struct layout *layout, __u64 *sum, const __u64 *values);

/* Those with the most samples come first; the order is the same in every run. */
void entries_sort(const struct layout *layout, struct entry *entries, size_t nr);

/* Entries summed up: how many, and their values. A new reference. */
json_t *rest_value(const struct host *host, const struct layout *layout, const struct entry *entries,
		   size_t nr);

/* The value of the member of this name in an entry's key, which holds it in 4 or 8 bytes. */
__u64 key_number(const struct layout *layout, const struct entry *entry, const char *name);

#endif
