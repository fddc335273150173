/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's types that the programs in bpf/ read, written by hand: the members that are used and
 * no others. What has a stable layout comes from the uapi headers; what has not is marked
 * preserve_access_index, and libbpf relocates each access to the layout of the running kernel.
 * Against a dump of the whole kernel this is readable, needs no BTF to build, and is tied to no
 * kernel.
 *
 * A program that touches a relocated type needs the kernel's BTF to load; one that does not, loads
 * without.
 */
#pragma once

#include <linux/types.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* include/linux/perf_event.h. The order of members has changed in 6.1, 6.2, 6.6 and 6.14. */
union perf_sample_weight___kernel {
	__u64 full;
};

union perf_mem_data_src___kernel {
	__u64 val;
};

struct perf_sample_data {
	__u64 sample_flags; /* since 6.1: which members hold what was measured */
	__u64 period;
	__u64 addr;
	union perf_sample_weight___kernel
		weight; /* a plain number before 5.12: struct perf_sample_data___v5_11 */
	union perf_mem_data_src___kernel data_src;
	__u64 phys_addr;
};

struct perf_sample_data___v5_11 {
	__u64 weight;
};

struct hw_perf_event {
	__u64 interrupts; /* in this tick; MAX_INTERRUPTS once the event is throttled */
};

struct perf_event {
	struct hw_perf_event hw;
	__u64 count; /* a local64_t; without what was inherited from it */
	__u64 id;    /* of no other event since the boot, nor of a copy */
};

#define MAX_INTERRUPTS (~0ULL) /* kernel/events/core.c */

/* What the context of a perf_event program is to the kernel: include/linux/perf_event.h. */
struct bpf_perf_event_data_kern {
	void *regs;
	struct perf_sample_data *data;
	struct perf_event *event;
};

/* include/linux/pid.h, include/linux/sched.h. A task has a number in its own pid namespace and in each
 * above: numbers[] has them from the initial one on. */
struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level; /* of its own namespace; 0: the initial one */
	struct upid numbers[1];
};

struct task_struct {
	int tgid; /* in the first namespace */
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct mm_struct *mm;
};

/* include/linux/mm_types.h, since 6.1; arch/x86/include/asm/mmu.h. */
struct mm_struct {
	struct maple_tree {
		void *ma_root;
	} mm_mt;
	struct {
		void *vdso;
	} context;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_pgoff;
	struct mm_struct *vm_mm;
	struct file *vm_file;
};

/* include/linux/maple_tree.h. */
enum maple_type { maple_leaf_64 = 1, maple_range_64, maple_arange_64 };

struct maple_range_64 {
	unsigned long pivot[1];
	void *slot[1];
};

struct maple_arange_64 {
	unsigned long pivot[1];
	void *slot[1];
};

/* include/linux/fs.h. */
struct file {
	struct inode *f_inode;
};

struct inode {
	unsigned long i_ino;
	long long i_size;
	struct super_block *i_sb;
};

struct super_block {
	unsigned int s_dev;
};

#pragma clang attribute pop
