/* SPDX-License-Identifier: GPL-2.0-only */
/* The plan of branch: sampled events, with the branches that led to each sample. */
#pragma once

#include "plan/plan.h"

/* branch's own options. */
struct branch_options {
	bool trace;	   /* --trace */
	const char *order; /* --sort, NULL if not given */
};

/* Plans sampling with branches. Returns 0, or -1 with the refusal. */
int plan_branch(struct plan *plan, const struct options *options, struct host *host, struct refusal *refusal);

/* Refuses machines without a last branch record. */
int branch_check_record(struct host *host, struct refusal *refusal);

/* Refuses keys if none of them is about branches. */
int branch_check_by(const struct options *options, struct refusal *refusal);
