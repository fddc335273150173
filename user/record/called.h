/* SPDX-License-Identifier: GPL-2.0-only */
/* Entries with stacks as values of a record: see record/chains.h. Those of different processes whose stacks
 * are the same count together, unless pid is among the keys. */
#ifndef NHMTAP_RECORD_CALLED_H
#define NHMTAP_RECORD_CALLED_H

#include <jansson.h>

#include "collection/aggregation.h"
#include "host/host.h"
#include "naming/codes.h"

struct called;

/* Takes in what was read. Reading and codes must live as long. `by_tables`: users' stacks were walked by
 * tables, as far as there were any; the account then says how the walks ended. */
struct called *called_of(const struct host *host, struct codes *codes, unsigned int detail, bool by_tables,
			 const struct layout *layout, const struct reading *reading);
void called_release(struct called *called);

/* How many entries there are. */
size_t called_count(const struct called *called);

/* Puts the account of the stacks, the list "frames", and the `top` largest "entries", the others summed
 * up as "rest". Frames are those of the entries that are put. */
void called_put(struct called *called, json_t *record, size_t top);

#endif
