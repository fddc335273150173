/* SPDX-License-Identifier: GPL-2.0-only */
/* Expectations in a plan: the events and metrics that they name are counted, even if they were not asked for
 * separately. One of the elapsed time needs no event. */
#pragma once

#include "option/option.h"
#include "plan/plan.h"

/* Parses expectations into plan->expectations, and sets `of` in each. Returns 0, or -1 with the
 * refusal. */
int expect_parse(struct plan *plan, const struct texts *texts, const struct host *host,
		 struct refusal *refusal);

/* Whether one of the expectations is of an event or metric. */
bool expect_counts(const struct plan *plan);

/* The metrics of the options and those of expectations, separated by ','; NULL if there are none. The caller
 * frees it. */
char *expect_metrics(const struct plan *plan, const struct options *options);

/* Finds the events and metrics of the expectations in the plan, and adds events that are missing. Returns 0,
 * or -1 with the refusal. */
int expect_bind(struct plan *plan, struct host *host, struct refusal *refusal);
