/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Everything that crosses the boundary between the kernel side and the program.
 *
 * An aggregation is one file here. It keeps one table a CPU in an array map that user space has
 * mapped; only the program writes, only user space reads, neither waits. What a table's keys and
 * values mean is not said here but in the BTF of the file: member names become the names in the
 * records, and the typedefs below say how a member is to be shown.
 */
#ifndef NHMTAP_SHARED_H
#define NHMTAP_SHARED_H

#include <linux/types.h>

/* A power of two. Full tables lose samples, which are counted; see table_full. */
#define TABLE_SLOTS 16384
/* Places that a key may stand in. More would make a full table slower, not larger. */
#define TABLE_PROBES 8

/* How a member of a key is shown. */
typedef __u64 address_t;   /* "0x401136" */
typedef __u64 cgroup_id_t; /* the path of the cgroup in the cgroup2 hierarchy */
typedef __u32 number_t;    /* 17 */
typedef char comm_t[16];   /* a string that ends at its first zero */
typedef __u32 padding_t;   /* not shown; always zero */
typedef __u32 branch_kind_t; /* one of enum branch_kind */

/* What an entry of branch.bpf.c stands for. */
enum branch_kind {
	BRANCH_STACK,  /* a sample: `from` is how many branches came with it */
	BRANCH_EDGE,   /* a branch that was taken */
	BRANCH_RANGE,  /* the straight code from the target of a branch to the next branch */
	BRANCH_BROKEN, /* two branches with no straight code between them: something came in between */
};

/* At the beginning of every table. All members only grow. */
struct table_head {
	__u64 runs;       /* samples that reached the program */
	__u64 period;     /* the sum of their periods: what they stand for */
	__u64 table_full; /* runs that found no place for their key */
	__u64 stack_failed;   /* runs to which the kernel gave no stack */
	__u64 entries_lost;   /* of runs that make several entries: those behind the first without a place */
	__u64 used;       /* slots taken; increased after the slot and its place in the order are written */
};

#endif
