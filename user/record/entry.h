/* SPDX-License-Identifier: GPL-2.0-only */
/* Entries of an aggregation, as values of a record. */
#pragma once

#include <jansson.h>

#include "aggregation/aggregation.h"
#include "host/host.h"
#include "record/compact.h"
#include "record/fields.h"
#include "record/key.h"
#include "shared.h"

/* How the members of entries are written: the keys that are in use, but not the stack (see record/chains.h),
 * and the values. */
#define COLUMN_HEAD 32
#define OWNER_ROOM  1536
struct entry_columns {
	const struct host *host;
	/* A cgroup, and the text of its path and of what it belongs to: mostly that of the next entry, too.
	 */
	struct {
		__u64 cgroup;
		size_t length; /* 0: none is kept */
		char text[OWNER_ROOM];
	} owner;
	size_t nr;
	struct column {
		const struct member_form *form;
		enum field_kind kind; /* FIELD_VALUE: what the form's function says */
		size_t offset, size;
		bool of_values; /* a value, not a key */
		bool owner;	/* a cgroup, which what it belongs to follows */
		size_t head_length;
		char head[COLUMN_HEAD]; /* ,"name": */
	} list[FIELDS_MOST];
};
/* `without`: a key that is left out; NULL: none. */
struct entry_columns entry_columns(const struct host *host, const struct layout *layout, const char *without);

/* Appends the members of an entry, each after a comma. */
void append_entry(struct compact *text, struct entry_columns *columns, const struct entry *entry);

/* The keys of a streamed sample, but not its stack. They are looked up once. */
struct streamed_keys {
	size_t nr;
	struct streamed_key {
		const char *name;
		size_t offset, size;
		const struct member_form *form;
		bool plain; /* a number, and nothing else */
	} list[FIELDS_MOST];
};
struct streamed_keys streamed_keys(const struct layout *layout);

/* Adds them. */
void add_streamed(struct fields *fields, const struct host *host, const struct streamed_keys *keys,
		  const void *key);

/* Adds the values alone to `record`. */
void put_values(json_t *record, const struct host *host, const struct layout *layout, const __u64 *values);

/* Adds values to `sum`, which has layout.value_size bytes. Of a value that is a maximum, the larger one is
 * kept. */
void values_add(const struct layout *layout, __u64 *sum, const __u64 *values);

/* What an entry's samples stand for: the sum of their periods. With a frequency, samples have unequal
 * periods, so that their number says nothing about how often an event has occurred. */
static inline __u64 entry_weight(const struct entry *entry)
{
	return ((const struct value_head *)entry->values)->period;
}

/* Compares by falling weight, then by falling number of samples: negative if `a` comes first. */
int entry_compare(const struct entry *a, const struct entry *b);

/* Sorts in this order; then by key, so that the order is the same in every run. */
void entries_sort(const struct layout *layout, struct entry *entries, size_t nr);

/* The sum of entries and of `nr_shed` others, whose values have been summed up already: their number, and
 * their values. Returns a new reference. */
json_t *rest_value(const struct host *host, const struct layout *layout, const struct entry *entries,
		   size_t nr, __u64 nr_shed, const __u64 *shed);

/* The number in an entry's key that the member of this name holds, in 4 or 8 bytes; 0 if there is no such
 * member. */
__u64 key_number(const struct layout *layout, const struct entry *entry, const char *name);
