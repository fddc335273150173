/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the tables of an aggregation, one a CPU in mapped memory, with plain loads. */
#ifndef NHMTAP_TABLE_READER_H
#define NHMTAP_TABLE_READER_H

#include <stddef.h>
#include <linux/types.h>

#include "collection/layout.h"
#include "collection/stacks.h"

struct bpf_object;
struct table_reader;

/* One key with its values, summed over CPUs. */
struct entry {
	const void *key;     /* as layout.keys describe it */
	const __u64 *values; /* what has come since the reading before: layout.value_size bytes */
};

/* What a reading found. All counts are since the beginning. */
struct reading {
	__u64 runs;       /* samples that reached the program: aggregated, table_full and stack_failed */
	__u64 period;     /* the sum of the periods of all runs */
	__u64 aggregated; /* samples in the tables */
	__u64 table_full, stack_failed; /* see struct table_head */
	__u64 throttled; /* times */
	/* Since the reading before: */
	__u64 further_lost;    /* see struct table_head */
	struct entry *entries; /* those that have changed */
	size_t nr_entries;     /* owned by the reader, valid up to the next reading */
	const struct stacks *stacks; /* what the entries' stacks are; NULL: they are not told apart */
};

/* Before the object is loaded: makes room for the tables of so many CPUs. The layouts and the stacks
 * (NULL: there are none) must live as long as the reader. */
struct table_reader *table_reader_prepare(struct bpf_object *object, int nr_cpus, const struct layout *layout,
			      const struct table_layout *table, struct stacks *stacks);
/* Once it is loaded: maps the tables. Returns 0 or -errno. */
int table_reader_map(struct table_reader *reader);
void table_reader_close(struct table_reader *reader);

/* Reads all tables; makes no system call. */
void table_reader_read(struct table_reader *reader, struct reading *reading);

#endif
