/* SPDX-License-Identifier: GPL-2.0-only */
/* The plan of stat: events, metrics, and expectations of them. */
#pragma once

#include "option/option.h"
#include "plan/plan.h"

/* stat's own options. */
struct stat_options {
	struct texts expect; /* --expect, all that were given */
};

/* Plans counting. Returns 0, or -1 with the refusal; see plan_counting(). */
int plan_stat(struct plan *plan, const struct options *options, struct host *host, struct refusal *refusal);
