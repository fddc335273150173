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
#ifndef NHMTAP_VMLINUX_H
#define NHMTAP_VMLINUX_H

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
};

#pragma clang attribute pop

#endif
