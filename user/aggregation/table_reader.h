/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads and empties the tables of an aggregation, one per CPU in mapped memory, with plain loads and stores.
 * Meanwhile, programs write the tables' other generation: see struct table_head in bpf/shared.h. No sample is
 * lost or read twice.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "aggregation/layout.h"
#include "aggregation/stack_areas.h"
#include "aggregation/stacks.h"

struct bpf_object;
struct remainder;
struct table_reader;

/* A key with its values, summed over CPUs. */
struct entry {
	const void *key;     /* laid out as layout.keys says */
	const __u64 *values; /* since the previous reading: layout.value_size bytes */
};

/* The result of a reading. Counts are since the beginning, unless noted. */
struct reading {
	__u64 runs;   /* samples that reached the program: aggregated, unwanted, table_full, stack_failed */
	__u64 period; /* the sum of the periods of all runs */
	__u64 aggregated;		/* samples in the tables */
	__u64 table_full, stack_failed; /* see struct generation_head */
	__u64 throttled;		/* see struct generation_head */
	__u64 filtered;			/* samples that a condition left out: see aggregation_where() */
	__u64 unwanted; /* these, and those that table_reader_filter() leaves out; not in `aggregated` */
	__u64 aggregated_period; /* the sum of the periods of those that are */
	bool counts_dropped;	 /* see struct table_head */
	/* Since the previous reading: */
	__u64 further, further_lost; /* further entries of samples: see entry_kind_t */
	__u64 stacks_full;	     /* samples whose stack found no room */
	struct entry *entries;	     /* the keys that had samples */
	size_t nr_entries;	     /* owned by the reader, valid until the tables are emptied again */
	const struct stacks *stacks; /* the entries' stacks; NULL: there are none */
	/* Keys that found no room among the entries: their number, where a key that came again counts again,
	 * and the sum of their values. */
	__u64 nr_shed;
	const __u64 *shed;
	struct stack_account shed_stacks;
	/* Those keys again, and those with a source that table_reader_take() gave away, summed up by kind and
	 * source, without a stack: see remainder.h. */
	const struct remainder *apart;
};

/* Must be called before the object is loaded: makes room for nr_cpus tables. The layouts and the stacks'
 * areas must outlive the reader; `areas` is NULL and stack_frames 0 if there are no stacks. */
struct table_reader *table_reader_prepare(struct bpf_object *object, int nr_cpus, const struct layout *layout,
					  const struct table_layout *table, struct stack_areas *areas,
					  unsigned int stack_frames);
/* Must be called after the object is loaded: maps the tables. Returns 0 or -errno. */
int table_reader_map(struct table_reader *reader);
void table_reader_close(struct table_reader *reader);

/* Leaves out entries whose cgroup `wanted` does not want. If the cgroup is not `shown`, entries that differ
 * by it alone are summed up. */
void table_reader_filter(struct table_reader *reader, bool (*wanted)(void *context, __u64 cgroup),
			 void *context, bool shown);

/* Reads and empties the tables; for most_keys see table_reader_drain(). Makes no system call, unless a
 * program stays inside a table for a while, because its (virtual) CPU was taken away: then it yields. */
void table_reader_read(struct table_reader *reader, size_t most_keys, struct reading *reading);

/* From now on, samples with the period `opened` count with the period `held`: see struct table_head. */
void table_reader_weigh(struct table_reader *reader, __u64 opened, __u64 held);

/* An event of a CPU, which is disabled now, has counted `count` so far. The part of it that is in no sample
 * is added to the next sample, but no more than `most`. */
void table_reader_carry(struct table_reader *reader, int cpu, __u64 count, __u64 most);

/* The number of runs of the program since it was loaded, the number of those that were timed, and their total
 * time. */
struct table_runs {
	__u64 runs, timed_runs, timed_ns;
};
struct table_runs table_reader_runs(const struct table_reader *reader);

/*
 * Empties the tables between two readings; their contents become part of the next reading. If there are more
 * than most_keys keys, the half with the most weight is kept, and the others are only summed up (`shed`).
 */
void table_reader_drain(struct table_reader *reader, size_t most_keys);

/* The number of keys that wait for the next reading; valid after table_reader_drain(). */
size_t table_reader_kept(const struct table_reader *reader);

/* The stacks of these keys, valid until the tables are emptied again or keys are taken. */
const struct stacks *table_reader_stacks(const struct table_reader *reader);

/* Calls `take` for each entry that waits for the next reading. Those that it takes (it returns true) will not
 * be part of it. To be called after table_reader_drain(). */
void table_reader_take(struct table_reader *reader, bool (*take)(void *context, const struct entry *entry),
		       void *context);

/* Adds the samples since the beginning, and those that were lost, to *samples and *lost. Empties the tables
 * for this like table_reader_drain(). */
void table_reader_so_far(struct table_reader *reader, __u64 *samples, __u64 *lost);
