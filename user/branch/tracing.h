/* SPDX-License-Identifier: GPL-2.0-only */
/* Traces: every branch of the target's threads is transferred to user space. There they are either
 * aggregated, with the same result as the samples of bpf/branch.bpf.c, or written one by one. */
#pragma once

#include "activity/activity.h"
#include "activity/sampling.h"

/* The value of activity->details. */
struct tracing {
	put_fn put;			  /* adds the result to a record */
	const struct code_key *code_keys; /* keys that name code */
	const struct gathering *gathering;
	/* All members are as for samples, but `put` calls tracing_gathered(). */
};

/* See sampling_gathered(). */
void *tracing_gathered(const struct activity *activity, const struct layout *layout);

extern const struct activity_ops tracing_ops;

/* Plans to trace every branch of the target's threads, and a clock that measures how long they ran. Returns
 * 0, or -1 with the refusal. */
int plan_trace(struct plan *plan, const struct options *options, struct host *host, struct refusal *refusal);
