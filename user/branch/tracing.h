/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Traces: every branch of the target's threads comes to user space and is aggregated here, in the form
 * that the samples of bpf/branch.bpf.c have, or written one by one.
 */
#ifndef NHMTAP_TRACING_H
#define NHMTAP_TRACING_H

#include "activity/activity.h"
#include "activity/sampling.h"

/* For activity->details. */
struct tracing {
	put_fn put;			  /* puts what was found into a record */
	const struct code_key *code_keys; /* keys that are names; both as for samples */
};

extern const struct activity_ops tracing_ops;

/* Plans to trace every branch of the target's threads, with a clock for how long they ran. */
int plan_trace(struct plan *plan, const struct options *options, struct host *host, struct refusal *refusal);

#endif
