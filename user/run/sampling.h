/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs that sample: each event with an aggregation of bpf/ behind it, reported as records of one type,
 * with the account of the samples. */
#ifndef NHMTAP_SAMPLING_H
#define NHMTAP_SAMPLING_H

#include "options.h"
#include "plan/plan.h"
#include "refusal.h"

struct sampling {
	const char *command;      /* the subcommand, and the type of its records: "profile" */
	const char *aggregation;  /* its file in bpf/: "profile" for profile.bpf.c */
	const char *default_keys; /* of --by */
	int (*plan)(struct plan *plan, const struct options *options, struct host *host,
		    struct refusal *refusal);
};

/* Returns the exit status, with a refusal filled in if there is one to be told; see run_activity(). */
int sampling_run(const struct sampling *sampling, const struct options *options,
		 struct refusal *refusal);

#endif
