/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests that are refused on a CPU that events/ has tables for: what the hardware ignores, what counts
 * nothing, what the kernel drops silently, or what it refuses without a reason. One row a rule, each with its
 * source. Pure.
 */
#ifndef NHMTAP_RULES_H
#define NHMTAP_RULES_H

#include "event/event.h"
#include "plan/target.h"
#include "refusal.h"

/* Checks all events against all rules; force sets aside those that only protect from useless
 * results. Returns 0, or -1 with the refusal of the first that is broken. Without a table of the
 * host's CPU nothing is known, and nothing refused. */
int rules_check(const struct events *events, const struct target *target, struct host *host, bool force,
		struct refusal *refusal);

/* Of the registers that the threads of a core share ("off-core register", "load-latency threshold", "branch
 * filter"): how many of this kind a core has, and the value that the event wants in one; 0 if it wants none.
 */
size_t rules_register(const struct event *event, const char *name, struct host *host, __u64 *value);

#endif
