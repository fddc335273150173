/* SPDX-License-Identifier: GPL-2.0-only */
/* What plans of all kinds have in common; for the files that make them. */
#ifndef NHMTAP_PLAN_COMMON_H
#define NHMTAP_PLAN_COMMON_H

#include "plan/plan.h"

/* Sets the fields that counting, sampling and tracing have in common, in all events of the plan. */
void plan_common(struct plan *plan, const struct host *host);

#endif
