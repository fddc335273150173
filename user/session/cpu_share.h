/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The share of a CPU that a session may have (--cpu-share, limits.cpu_share of CONFIG): what its activities
 * cost is watched, and how often they sample is changed so that it keeps to it.
 *
 * The cost is the CPU time of nhmtap's own threads and of the kernel for samples, since the first activity
 * has begun. What counting itself takes, when tasks are switched for example, nothing tells; it is not in it.
 */
#ifndef NHMTAP_CPU_SHARE_H
#define NHMTAP_CPU_SHARE_H

#include <stdbool.h>
#include <linux/types.h>

#include "session/loop.h"
#include "session/share_control.h"

struct cpu_share;
struct share_member;

/* What an activity that samples is to the share. */
struct sampled_part {
	void *context;
	/* CPU time that the kernel has spent on its samples since the call before. */
	__u64 (*cost)(void *context);
	/* Samples by periods that are those asked for, times the factor. NULL: it can't. */
	void (*hold)(void *context, double factor);
};

/* `allowed`: CPU time by time. The loop stays the caller's. */
struct cpu_share *cpu_share_new(struct loop *loop, double allowed);
void cpu_share_release(struct cpu_share *share);

/* An activity begins, whose records cover this time (0: all), and ends. `part` may be NULL, and so may the
 * share: nothing happens then, and NULL is returned. */
struct share_member *cpu_share_join(struct cpu_share *share, const struct sampled_part *part,
				    __u64 interval_ns);
void cpu_share_leave(struct cpu_share *share, struct share_member **member);

/* What was spent so far. */
__u64 cpu_share_spent(struct cpu_share *share);

/* Whether the share is exceeded though samples take little of it: see share_exceeded(). True only once. */
bool cpu_share_exceeded(struct cpu_share *share);

/* What holds now. */
const struct share_control *cpu_share_control(const struct cpu_share *share);

#endif
