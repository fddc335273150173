/* SPDX-License-Identifier: GPL-2.0-only */
/* Entries with stacks, as members of a record: see record/chains.h. Entries of several processes with equal
 * stacks are summed up, unless pid is one of the keys. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "aggregation/aggregation.h"
#include "host/host.h"
#include "naming/codes.h"

struct called;

/*
 * `layout` and `codes` are borrowed and must outlive the result, which the caller frees with
 * called_release(). `by_tables` says that users' stacks were walked by unwind tables where there are any; the
 * account of stacks then says how the walks ended.
 */
struct called *called_new(const struct host *host, struct codes *codes, unsigned int detail, bool by_tables,
			  const struct layout *layout);

/* The next entries have these stacks. */
void called_from(struct called *called, const struct stacks *stacks);

/* Takes in an entry, unless there is no time for the names of its stack (see codes_try()): then returns
 * false. */
bool called_try(struct called *called, const struct entry *entry);

/* Takes in the entries of the interval's reading, after which called_put() may be called. */
void called_add(struct called *called, const struct reading *reading);

void called_release(struct called *called);

/* The number of entries. */
size_t called_count(const struct called *called);

/* Adds to the record the account of the stacks, the list "frames" with the frames of the entries that are
 * written, the `top` largest "entries", and the sum of the others as "rest". */
void called_put(struct called *called, json_t *record, size_t top);
