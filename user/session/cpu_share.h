/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps a session to its share of a CPU (--cpu-share, limits.cpu_share of CONFIG): the cost of its activities
 * is measured, and their sampling periods are changed accordingly.
 *
 * The cost is the CPU time of nhmtap's own threads, and of the kernel for samples, since the first activity
 * began. The cost of counting itself, for example at task switches, can't be measured and is not included.
 */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

#include "session/loop.h"
#include "session/share_control.h"

struct cpu_share;
struct share_member;

/* What the share needs of an activity that samples. */
struct sampled_part {
	void *context;
	/* Returns the CPU time that the kernel has spent on its samples since the last call. */
	__u64 (*cost)(void *context);
	/* Sets the periods to those asked for, times the factor. NULL: the periods can't be changed. */
	void (*hold)(void *context, double factor);
};

/* `allowed`: CPU time divided by time. The caller owns the loop. */
struct cpu_share *cpu_share_new(struct loop *loop, double allowed);
void cpu_share_release(struct cpu_share *share);

/* To be called when an activity begins, and when it ends. `interval_ns`: the time that its records cover; 0:
 * all. `part` may be NULL. If the share is NULL, nothing happens, and NULL is returned. */
struct share_member *cpu_share_join(struct cpu_share *share, const struct sampled_part *part,
				    __u64 interval_ns);
void cpu_share_leave(struct cpu_share *share, struct share_member **member);

/* The CPU time spent so far, in ns. */
__u64 cpu_share_spent(struct cpu_share *share);

/* Whether the share is exceeded although samples take little of it: see share_exceeded(). Returns true only
 * once. */
bool cpu_share_exceeded(struct cpu_share *share);

/* The current state of the controller. */
const struct share_control *cpu_share_control(const struct cpu_share *share);
