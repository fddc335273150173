/* SPDX-License-Identifier: GPL-2.0-only */
/* Expectations as a part of the plan: what they name is counted, whether it was asked for or not. */
#ifndef NHMTAP_EXPECT_H
#define NHMTAP_EXPECT_H

#include "option/option.h"
#include "plan/plan.h"

/* Parses expectations into plan->expectations and tells which are of metrics. Returns 0, or -1
 * with the refusal. */
int expect_parse(struct plan *plan, const struct texts *texts, const struct host *host,
		 struct refusal *refusal);

/* The metrics of the options and those that are expected something of, ',' between them; NULL if there
 * are none. The caller frees it. */
char *expect_metrics(const struct plan *plan, const struct options *options);

/* Finds what they name in the plan, and adds events that are not there. Returns 0, or -1 with the
 * refusal. */
int expect_bind(struct plan *plan, struct host *host, struct refusal *refusal);

#endif
