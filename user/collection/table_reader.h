/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads and empties the tables of an aggregation, one a CPU in mapped memory, with plain loads and
 * stores. Programs go on meanwhile, in the tables' other generation: see struct table_head in
 * bpf/shared.h. No sample is lost or read twice.
 */
#ifndef NHMTAP_TABLE_READER_H
#define NHMTAP_TABLE_READER_H

#include <stddef.h>
#include <linux/types.h>

#include "collection/layout.h"
#include "collection/stack_areas.h"
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
	__u64 runs;	  /* samples that reached the program: aggregated, table_full and stack_failed */
	__u64 period;	  /* the sum of the periods of all runs */
	__u64 aggregated; /* samples in the tables */
	__u64 table_full, stack_failed; /* see struct generation_head */
	__u64 throttled;		/* times */
	/* Since the reading before: */
	__u64 further, further_lost; /* entries of samples beside their own: see entry_kind_t */
	__u64 stacks_full;	     /* samples whose stack found no room */
	struct entry *entries;	     /* of the keys that had samples */
	size_t nr_entries;	     /* owned by the reader, valid up to the next reading */
	const struct stacks *stacks; /* the entries' stacks; NULL: there are none */
};

/* Before the object is loaded: makes room for the tables of so many CPUs. The layouts and the areas of the
 * stacks (NULL, and 0 frames: there are none) must live as long as the reader. */
struct table_reader *table_reader_prepare(struct bpf_object *object, int nr_cpus, const struct layout *layout,
					  const struct table_layout *table, struct stack_areas *areas,
					  unsigned int stack_frames);
/* Once it is loaded: maps the tables. Returns 0 or -errno. */
int table_reader_map(struct table_reader *reader);
void table_reader_close(struct table_reader *reader);

/* What has come since the reading before; most_keys as for draining. Makes no system call, unless a program
 * that is inside a table does not go on for a while: its CPU was taken away. */
void table_reader_read(struct table_reader *reader, size_t most_keys, struct reading *reading);

/* How full the fullest table or area of stacks is, in percent. From 70 on, some samples find no slot. */
unsigned int table_reader_fill(const struct table_reader *reader);

/* Samples of the period that a clock was opened with are of another one, from now on: struct table_head. */
void table_reader_weigh(struct table_reader *reader, __u64 opened, __u64 held);

/* An event of a CPU, disabled now, has counted so much: what is in no sample is in the next one, but no more
 * than `most`. */
void table_reader_carry(struct table_reader *reader, int cpu, __u64 count, __u64 most);

/* Runs of the program since it was loaded, and the time of those that were timed. */
struct table_runs {
	__u64 runs, timed_runs, timed_ns;
};
struct table_runs table_reader_runs(const struct table_reader *reader);

/* Empties the tables between two readings; what was in them is part of the next one. Samples of keys that
 * would be more than most_keys are lost, and counted as those of a full table. */
void table_reader_drain(struct table_reader *reader, size_t most_keys);

/* Empties the tables likewise, and adds the samples that came since the beginning, and those that were
 * lost. */
void table_reader_so_far(struct table_reader *reader, __u64 *samples, __u64 *lost);

#endif
