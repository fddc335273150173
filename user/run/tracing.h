/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs that trace: every branch of the target's threads comes to user space and is aggregated here, in
 * the form that the samples of bpf/branch.bpf.c have, or written one by one.
 */
#ifndef NHMTAP_TRACING_H
#define NHMTAP_TRACING_H

#include "options.h"
#include "refusal.h"
#include "run/run.h"
#include "run/sampling.h"

/* `put` puts what was found into a record, `code_keys` are keys that are names, both as for samples.
 * Returns the exit status, with a refusal filled in if there is one to be told; see
 * run_activity(). */
int tracing_run(put_fn put, const struct code_key *code_keys, const struct options *options,
		struct refusal *refusal);

#endif
