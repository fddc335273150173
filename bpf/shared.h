/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Everything that the BPF programs and user space share.
 *
 * An aggregation is one file here. It keeps one table per CPU in an array map that user space has mapped.
 * Each table has two generations: the program writes one while user space reads and empties the other; the
 * program never waits. The meaning of a table's keys and values is not written down here but taken from the
 * BTF of the file: the names of members become the names in the records, and the typedefs below say how a
 * member is shown.
 */
#pragma once

#include <linux/types.h>

/* Each aggregation is also built with tables of a quarter and of a sixteenth of the size (2 and 4 bits less),
 * of which machines with many CPUs get one. */
#ifndef TABLES_SHIFT
#define TABLES_SHIFT 0
#endif

/* Slots of each generation; a power of two. User space empties a table before it is full. If keys come faster
 * than that, a full table loses samples; they are counted in table_full. */
#define TABLE_SLOTS (8192 >> TABLES_SHIFT)

/* The slots that are tried for a key. More would make a full table slower, not larger. */
#define TABLE_PROBES 16

/* From here on a table's generation, an area of stacks or a ring is filling: user space is woken to empty it.
 * A key may find no slot from about 70 percent on, so a million new keys a second leave more than 3 ms. */
#define FILLING(room) ((room) / 4)

/* How a member of a key or a value is shown. Values of several CPUs are merged by their sum, unless the
 * typedef says otherwise. */
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
typedef __u64 maximum_t;     /* merged by the maximum */
#define LOG2_BUCKETS 16
typedef __u64
	log2_histogram_t[LOG2_BUCKETS]; /* [i]: how many were from 2^i up to 2^(i+1); the last: or more */

/* In place of a helper's number: a call of the kernel's bpf_cast_to_kern_ctx(), whose own number
 * aggregation/folding.c puts there. */
#define CAST_TO_KERNEL 0x7e57c0de

/* The fields of perf_mem_data_src that describe the access and not what answered it: mem_lock (bits 25:24),
 * mem_dtlb (32:26), mem_blk (42:40). */
#define DATA_SRC_LOCK_SHIFT 24
#define DATA_SRC_LOCK_MASK  0x3U
#define DATA_SRC_TLB_SHIFT  26
#define DATA_SRC_TLB_MASK   0x7fU
#define DATA_SRC_ACCESS	    0x701ff000000ULL

#define NODE_UNKNOWN  0U
#define NODE_IS(node) ((node) + 1)
#define NODE_OTHER    0x80000000U /* | NODE_IS(node): any node but that one */

/* The kind of an entry. A sample that makes several entries makes one of kind 0, which is counted in the
 * account of samples. Its further entries have other kinds, and their values count how often they
 * occurred. */
typedef __u32 entry_kind_t;

/* The most branches that come with a sample: Nehalem's record holds 16, Skylake's and later ones 32, and an
 * architectural one up to 64 (CPUID.1CH). The driver gives the number in caps/branches. */
#define BRANCHES_MOST 64

/* The kinds of entries of branch.bpf.c. */
enum branch_kind {
	BRANCH_STACK,  /* the sample itself: `from` is the number of branches that came with it */
	BRANCH_EDGE,   /* a branch that was taken */
	BRANCH_MISSED, /* a branch that was mispredicted; a separate entry because the slot's cache line has
			  no room for a second count */
	BRANCH_RANGE,  /* the straight code from the target of a branch to the next branch */
	BRANCH_BROKEN, /* two branches that no straight-line code can join: an interrupt or system call came
			  in between */
};

/*
 * At the beginning of every CPU's table. The table has two generations, and the program enters samples into
 * the one that user space selects. To empty a generation, user space selects the other one and waits until
 * the program is not inside the table, or has left it once: from then on no sample is entered into the old
 * one. The program makes `turns` odd before it reads which generation to use.
 */
struct table_head {
	__u64 turns;	  /* written by the program */
	__u64 generation; /* written by user space; only its lowest bit is used */
	/* For an event whose period user space changes (`paced`); written by user space. A sample whose
	 * period is period_opened is counted with period_held instead; if both are 0, the samples' own
	 * periods are right. This is needed for clocks, whose samples keep reporting the period that the
	 * event was opened with: perf_swevent_init_hrtimer() sets last_period, and nothing updates it later.
	 * Samples of copies that tasks have inherited report their own period. */
	__u64 period_opened, period_held;
	/* What had been counted towards the next sample when the period was changed: it is added to that
	 * sample's period. Written by user space while the event is disabled, set to zero by the program. */
	__u64 carried;
	__u64 weighed; /* written by the program: the sum of all periods so far */
	/* If `timed` is set, one of TIMED_ONE_IN runs is timed. Written by the program. */
	__u64 timed_runs, timed_ns;
	__u64 timed_since; /* when the present run began; 0: it is not timed */
	__u64 period;	   /* what the present sample stands for, where the program has to keep it */
	/* Of events that are weighed by their counts; written by the program: whether some count may have
	 * been dropped. The others are in the first CPU's table, for all: how many first counts were stored,
	 * the highest number of an event among them, and what that was at the last two of each counts_step.
	 */
	__u64 counts_dropped;
	__u64 first_counts, stepped, newest, newest_then, newest_before;
};

#define TIMED_ONE_IN 16 /* a power of two */

/* Of so many events of a program the last counts are kept: see `counts` in table.bpf.h. An LRU map drops the
 * oldest ones when less than 128 for each CPU are free (LOCAL_FREE_TARGET, kernel/bpf/bpf_lru_list.c), so
 * half of it is always there. */
#define COUNTS_OF(cpus) ((cpus) > 64 ? 256 * (cpus) : 16384)

/* Of each generation. User space sets it to zero when it empties the generation, so each number counts
 * samples since then. */
struct generation_head {
	__u64 table_full;   /* samples that found no slot for their key */
	__u64 stack_failed; /* samples that came without branches (branch.bpf.c), for programs that need them
			     */
	__u64 period_of_full; /* the sum of the periods of both kinds of lost samples */
	__u64 further_lost;   /* further entries (see entry_kind_t) that found no slot */
	__u64 used;	      /* slots taken */
	__u64 told;	      /* user space was woken because the generation is filling */
	__u64 throttled; /* times that the kernel has stopped the event until its next tick because of too
			    many samples */
	__u64 filtered;	 /* samples that did not meet the condition */
	__u64 period_of_filtered;
};

/*
 * A condition on samples: see plan/where.h. Each comparison says which one, counted from 0, comes next if it
 * holds
 * (`yes`) and if not (`no`); always a later one, or the result.
 */
#define WHERE_TERMS    16
#define WHERE_WANTED   0xfffe
#define WHERE_UNWANTED 0xffff

enum where_field {
	WHERE_IP,
	WHERE_PID,
	WHERE_TID,
	WHERE_CPU,
	WHERE_CGROUP,
	WHERE_COMM, /* the first 8 bytes of the name */
	WHERE_COMM_END,
	WHERE_PERIOD,
	WHERE_ADDRESS,
	WHERE_LATENCY,
	WHERE_SOURCE,
};

enum where_op { WHERE_EQUAL, WHERE_LESS, WHERE_GREATER };

struct where_term {
	__u32 field, op, yes, no;
	__u64 mask, value; /* the field's bits in `mask` are compared with the value */
};

/* At the beginning of every value. */
struct value_head {
	__u64 samples;
	__u64 period; /* the sum of their periods */
};

/*
 * Stacks beside the table, which a key of type stack_id_t refers to. Each generation of a CPU's table has an
 * area in mapped memory, in which each different stack is stored once, one behind the other. Stacks are
 * compared by a 64-bit hash: two of the 2^14 stacks that fit have the same hash in one of 10^11 generations.
 */
#define STACK_FRAMES  255 /* of one stack at most; 2^n - 1 */
#define STACK_DEFAULT 127 /* if the user does not say how many */
#define STACK_SLOTS   (16384 >> TABLES_SHIFT)
#define STACK_WORDS   (1 << (17 - TABLES_SHIFT)) /* 1 MiB: about 6,000 stacks of 20 frames */

/* The values of a stack_id_t: STACK_FIRST plus the index of the word of the area at which the stack begins,
 * or the reason why there is no stack. 0: stacks are not a key. */
enum stack_id {
	STACK_FAILED = 1, /* the kernel gave no frame */
	STACK_FULL,	  /* there was no room for another stack */
	STACK_FIRST,
};

/* Why a stack ends at its outermost frame. */
enum stack_end {
	STACK_UNTOLD, /* not known: the kernel walked it by frame pointers, as requested */
	STACK_WHOLE,  /* the outermost frame was not called by another one */
	STACK_CUT,    /* it has as many frames as were requested */
	/* Neither tables nor a frame pointer led further: */
	STACK_NO_TABLE,	  /* the code there has no table */
	STACK_NO_ROW,	  /* the table of the file has no row that could be used */
	STACK_UNREADABLE, /* the memory can't be read, or holds no stack */
};

/* Which of the user's frames were found by frame pointers because there was no table. */
enum stack_guessed {
	GUESSED_NONE,
	GUESSED_SOME, /* those marked with FRAME_GUESSED */
	GUESSED_ALL,  /* all but the innermost: the kernel walked them by frame pointers */
};

struct stored_stack {
	__u64 hash;
	__u32 pid; /* the process of the user's frames; 0 if there are none */
	__u8 kernel_frames, user_frames;
	__u8 end;	/* enum stack_end */
	__u8 guessed;	/* enum stack_guessed */
	__u64 frames[]; /* the kernel's, then the user's, each from the innermost */
};

/* Bits that no user address has. GUESSED: the frame was found by a frame pointer because there was no table.
 * INTERRUPTED: a signal interrupted the code at this address, or its handler returns there, so it is not the
 * address behind a call. */
#define FRAME_GUESSED	     (1ULL << 62)
#define FRAME_INTERRUPTED    (1ULL << 61)
#define FRAME_ADDRESS(frame) ((__s64)(frame) < 0 ? (frame) : (frame) & ~(FRAME_GUESSED | FRAME_INTERRUPTED))

/* At the beginning of each area; its words follow. To empty an area, user space sets `used` and `told` to 0
 * and begins a new epoch. */
struct stacks_head {
	__u32 used;  /* words, less than STACK_WORDS */
	__u32 epoch; /* slots of another epoch are free */
	__u64 told;  /* user space was woken because the area is filling */
};

/*
 * A stream of samples beside the table: one ring per CPU in mapped memory. The program overwrites the oldest
 * samples and never waits for the reader. It increments `written` when a sample is complete.
 */
#define RING_SAMPLES_MOST   (1 << 16) /* powers of two; user space chooses how many */
#define RING_SAMPLES_LEAST  (1 << 8)  /* of all events of an activity together */
#define RING_SAMPLES_FEWEST (1 << 4)

struct ring_head {
	__u64 written;
};

/* At the beginning of every sample in a ring; the key follows. */
struct sample_head {
	__u64 time; /* CLOCK_MONOTONIC, ns */
	__u64 address;
	__u64 latency; /* core cycles, 0: not measured */
	__u64 period;
	__u64 physical; /* address, 0: not known */
};

/*
 * What is too large for a key, in arrays beside the rings: the element of a sample has the number of its CPU
 * times the samples of a ring, plus its place in the ring.
 */
#define RING_REGISTERS 21 /* as in struct pt_regs: from r15 to ss */

struct ring_registers {
	__u64 words[RING_REGISTERS];
};

struct ring_stack {	 /* user space makes room for as many frames as were asked for */
	__u64 id;	 /* enum stack_id; from STACK_FIRST on there are frames */
	__u64 hash, how; /* struct stored_stack */
	__u64 frames[STACK_FRAMES];
};

/* struct perf_branch_entry without its bit-fields: bit 0 of flags is the first of them. */
struct branch {
	__u64 from;
	__u64 to;
	__u64 flags;
};
#define BRANCH_MISPREDICTED 1

struct ring_branches { /* user space makes room for as many as the CPU records */
	__u64 bytes;
	struct branch list[BRANCHES_MOST]; /* from the newest */
};

/*
 * A counter as counters.bpf.c reads it on the counter's own CPU: the kernel's values, and whether reading
 * them worked. It is in mapped memory, and written only while user space waits for it.
 */
struct counter_reading {
	__u64 value;
	__u64 enabled_ns;
	__u64 running_ns;
	__s64 error; /* 0 or -errno: the other members are then not valid */
};

/*
 * Counts for each cgroup: what cgroups.bpf.c adds up on a CPU, in mapped memory. The sums only grow, until
 * user space releases those of a cgroup that has been removed.
 */
#define CGROUP_EVENTS_MOST 32
#define CGROUP_NONE	   0ULL	   /* in place of a cgroup's id: the slot was never used */
#define CGROUP_RELEASED	   (~0ULL) /* in place of a cgroup's id: the slot may be used again */

/* The last slots of a CPU. They have ids that no cgroup has: CGROUP_NO_CGROUP + the index. */
enum cgroup_last {
	CGROUP_OTHERS, /* the sum of all cgroups that found no free slot */
	CGROUP_MISSED, /* what was counted up to a switch that the program missed: it belongs to any of the
			  cgroups that ran meanwhile */
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
	__u64 missed;	/* switches that it was not run at */
	__u64 switches; /* the count of the switch event at the program's last run */
	__u64 current;	/* the current cgroup at that time; CGROUP_NONE: there was a switch */
	struct counter_sum last[CGROUP_EVENTS_MOST];
};

/*
 * The pid namespace of nhmtap, as namespace.bpf.c finds it, and the offsets, in bytes, by which the kernel's
 * memory leads to a task's number in it.
 */
struct own_namespace {
	__u64 address;	     /* of its struct pid_namespace; 0: not found */
	__u32 level;	     /* 0: the initial namespace */
	__u32 leader_offset; /* task_struct.group_leader */
	__u32 pid_offset;    /* task_struct.thread_pid */
	__u32 level_offset;  /* pid.level */
	__u32 upid_offset;   /* pid.numbers[level] */
	__u32 padding;
};
