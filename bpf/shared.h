/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Everything that crosses the boundary between the kernel side and the program.
 *
 * An aggregation is one file here. It keeps one table a CPU in an array map that user space has
 * mapped. Each table has two generations: the program writes one, while user space reads and empties
 * the other; the program never waits. What a table's keys and values mean is not said here but in the
 * BTF of the file: member names become the names in the records, and the typedefs below say how a member
 * is to be shown.
 */
#ifndef NHMTAP_SHARED_H
#define NHMTAP_SHARED_H

#include <linux/types.h>

/* Of each generation; a power of two. User space empties a table before it is full; where keys come faster
 * than that, a full table loses samples, which are counted; see table_full. */
#define TABLE_SLOTS 8192
/* Slots that a key may stand in. More would make a full table slower, not larger. */
#define TABLE_PROBES 16

/* How a member of a key or a value is shown, and how values of several CPUs are merged: by their sum, unless
 * stated otherwise. */
typedef __u64 address_t;     /* "0x401136" */
typedef __u64 cgroup_id_t;   /* the path of the cgroup in the cgroup2 hierarchy */
typedef __u32 number_t;	     /* 17 */
typedef char comm_t[16];     /* a string that ends at its first zero */
typedef __u32 padding_t;     /* not shown; always zero */
typedef __u32 node_t;	     /* a NUMA node: see the macros below */
typedef __u64 data_source_t; /* perf_mem_data_src.val without DATA_SRC_ACCESS: what answered, by name */
typedef __u32 tlb_t;	     /* perf_mem_data_src.mem_dtlb: what the address translation met */
typedef __u32 lock_t;	     /* perf_mem_data_src.mem_lock: whether it was a locked instruction */
typedef __u32 stack_id_t;    /* the frames that led there: see struct stored_stack */
typedef __u64 maximum_t;     /* of several, the largest counts */
#define LOG2_BUCKETS 16
typedef __u64
	log2_histogram_t[LOG2_BUCKETS]; /* [i]: how many were from 2^i up to 2^(i+1); the last: or more */

/* The fields of perf_mem_data_src that are about the access and not about what answered it: mem_lock
 * (bits 25:24), mem_dtlb (32:26), mem_blk (42:40). */
#define DATA_SRC_LOCK_SHIFT 24
#define DATA_SRC_LOCK_MASK  0x3U
#define DATA_SRC_TLB_SHIFT  26
#define DATA_SRC_TLB_MASK   0x7fU
#define DATA_SRC_ACCESS	    0x701ff000000ULL

#define NODE_UNKNOWN  0U
#define NODE_IS(node) ((node) + 1)
#define NODE_OTHER    0x80000000U /* | NODE_IS(node): any but that one */

/* A sample that makes several entries makes one of kind 0, which stands for it in the account of
 * samples. Its further entries have other kinds, and their values count how often they came. */
typedef __u32 entry_kind_t;

/* Branches that come with a sample, at most: Nehalem's record holds 16, since Skylake's 32, and an
 * architectural one may hold 64 (CPUID.1CH). The driver gives the number in caps/branches. */
#define BRANCHES_MOST 64

/* Kinds of branch.bpf.c. */
enum branch_kind {
	BRANCH_STACK,  /* the sample: `from` is how many branches came with it */
	BRANCH_EDGE,   /* a branch that was taken */
	BRANCH_MISSED, /* the same, mispredicted; an entry of its own because a slot's cache line has no room
			  for it */
	BRANCH_RANGE,  /* the straight code from the target of a branch to the next branch */
	BRANCH_BROKEN, /* two branches with no straight code between them: something came in between */
};

/*
 * At the beginning of every CPU's table. The table has two generations, and the program enters samples
 * into the one that user space names. To empty a generation, user space names the other one and waits
 * until the program is not inside, or has left once: no sample is entered into the old one from then on.
 * The program makes `turns` odd before it looks which generation it is to use.
 */
struct table_head {
	__u64 turns;	  /* written by the program */
	__u64 generation; /* written by user space; its lowest bit counts */
	/* Of an event whose period user space changes (`paced`), written by it: samples of the first period
	 * are of the second; 0: the samples' own periods are right. A clock's samples keep the period that it
	 * was opened with: perf_swevent_init_hrtimer() sets last_period, and nothing later does. Those of
	 * copies that tasks have inherited tell their own. */
	__u64 period_opened, period_held;
	/* What was counted towards a sample when the period was changed: the next one stands for it as well.
	 * Written by user space while the event is disabled, zeroed by the program. */
	__u64 carried;
	__u64 weighed; /* written by the program: the sum of all periods so far */
	/* One run in TIMED_ONE_IN is timed, of runs that are `timed`. */
	__u64 timed_runs, timed_ns; /* written by the program */
};

#define TIMED_ONE_IN 16 /* a power of two */

/* Of each generation. User space zeroes it when it empties the generation, so each count is of the samples
 * since then. */
struct generation_head {
	__u64 table_full;     /* samples that found no slot for their key */
	__u64 stack_failed;   /* samples that came without the stack that the program is about */
	__u64 period_of_full; /* the sum of the periods of both: what they stand for */
	__u64 further_lost;   /* further entries of samples that found no slot; see entry_kind_t */
	__u64 used;	      /* slots taken */
	__u64 throttled;      /* times that the kernel stopped the event to its next tick: too many samples */
};

/* At the beginning of every value. */
struct value_head {
	__u64 samples;
	__u64 period; /* the sum of their periods */
};

/*
 * Stacks beside the table: what a key of type stack_id_t names. Each generation of a CPU's table has an area
 * in mapped memory, in which each stack stands once, one behind the other. Stacks are told apart by a hash of
 * 64 bits: two of the 2^14 stacks that fit share a hash in one of 10^11 generations.
 */
#define STACK_FRAMES  255 /* the most of one stack; 2^n - 1 */
#define STACK_DEFAULT 127 /* where nothing is said */
#define STACK_SLOTS   16384
#define STACK_WORDS   (1 << 17) /* 1 MiB: some 6,000 stacks of 20 frames */

/* What a stack_id_t is: where the stack begins among the words of the area, from STACK_FIRST on; or why
 * there is none. 0: stacks are not told apart. */
enum stack_id {
	STACK_FAILED = 1, /* the kernel gave no frame */
	STACK_FULL,	  /* there was no room for another stack */
	STACK_FIRST,
};

/* How a stack's outermost frame became the last one. */
enum stack_end {
	STACK_UNTOLD, /* the kernel walked it by frame pointers, as it was asked to */
	STACK_WHOLE,  /* nobody called it */
	STACK_CUT,    /* there are as many frames as were asked for */
	/* Neither tables nor a frame pointer led any further: */
	STACK_NO_TABLE,	  /* it is in code without a table */
	STACK_NO_ROW,	  /* its file's table does not say */
	STACK_UNREADABLE, /* the memory could not be read, or holds no stack */
};

/* Which user frames were found by frame pointers because there was no table. */
enum stack_guessed {
	GUESSED_NONE,
	GUESSED_SOME, /* those that say so: FRAME_GUESSED */
	GUESSED_ALL,  /* all but the first: the kernel has walked them */
};

struct stored_stack {
	__u64 hash;
	__u32 pid; /* whose the user's frames are; 0 if there are none */
	__u8 kernel_frames, user_frames;
	__u8 end;	/* enum stack_end */
	__u8 guessed;	/* enum stack_guessed */
	__u64 frames[]; /* the kernel's, then the user's, each from the innermost */
};

/* In a user's frame, which has no such address: it was found by a frame pointer, for want of a table; it is
 * where a signal came, not where a call returns to. */
#define FRAME_GUESSED	     (1ULL << 62)
#define FRAME_INTERRUPTED    (1ULL << 61)
#define FRAME_ADDRESS(frame) ((__s64)(frame) < 0 ? (frame) : (frame) & ~(FRAME_GUESSED | FRAME_INTERRUPTED))

/* At the beginning of each area; its words follow. User space empties it: none used, and a new epoch. */
struct stacks_head {
	__u32 used;  /* words, less than STACK_WORDS */
	__u32 epoch; /* slots of another epoch are free */
};

/*
 * A stream of samples beside the table: a ring a CPU in mapped memory, which the program overwrites
 * without waiting for its reader. `written` is increased once a sample is whole.
 */
#define RING_SAMPLES 4096 /* a power of two */

struct ring_head {
	__u64 written;
};

/* At the beginning of every sample of a ring; the key follows. */
struct sample_head {
	__u64 time; /* CLOCK_MONOTONIC, ns */
	__u64 address;
	__u64 latency; /* core cycles, 0: not measured */
	__u64 period;
};

/*
 * Counters, read by counters.bpf.c on their own CPU: what the kernel says of one, and how that went.
 * Stands in mapped memory, written only while user space waits for it.
 */
struct counter_reading {
	__u64 value;
	__u64 enabled_ns;
	__u64 running_ns;
	__s64 error; /* 0 or -errno: the rest says nothing */
};

/*
 * Counts for each cgroup: what cgroups.bpf.c adds up on a CPU, in mapped memory. They only grow, until user
 * space releases the sums of a cgroup that is gone.
 */
#define CGROUP_EVENTS_MOST 32
#define CGROUP_NONE	   0ULL	   /* no cgroup's id: a slot that was never used */
#define CGROUP_RELEASED	   (~0ULL) /* nor this: one that may be used again */

/* The last slots of a CPU, whose ids are no cgroup's either: CGROUP_NO_CGROUP and what follows. */
enum cgroup_last {
	CGROUP_OTHERS, /* of cgroups that have found none */
	CGROUP_MISSED, /* counted while the kernel ran no program at a switch: of all that ran meanwhile */
	CGROUP_LAST_SLOTS,
};
#define CGROUP_NO_CGROUP (~0ULL - CGROUP_LAST_SLOTS)

struct counter_sum {
	__u64 value;
	__u64 enabled_ns;
	__u64 running_ns;
};

struct cgroup_sums {
	__u64 cgroup; /* its id */
	struct counter_sum counts[CGROUP_EVENTS_MOST];
};

struct cgroup_cpu {
	__u64 seen;	/* switches that the program was run at */
	__u64 missed;	/* and those that it was not */
	__u64 switches; /* by the event's own count, at the last time */
	struct counter_sum last[CGROUP_EVENTS_MOST];
};

/*
 * nhmtap's own pid namespace, as namespace.bpf.c finds it, and where the kernel keeps a task's number in
 * it. Offsets are in bytes.
 */
struct own_namespace {
	__u64 address;	     /* of its struct pid_namespace; 0: not found */
	__u32 level;	     /* 0: the initial one */
	__u32 leader_offset; /* task_struct.group_leader */
	__u32 pid_offset;    /* task_struct.thread_pid */
	__u32 level_offset;  /* pid.level */
	__u32 upid_offset;   /* pid.numbers[level] */
	__u32 padding;
};

#endif
