/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests that are refused on a CPU for which events/ has tables: those that the hardware ignores, that
 * count nothing, that the kernel drops silently, or that it refuses without a reason. There is one row per
 * rule, with its source. Pure.
 */
#pragma once

#include "base/refusal.h"
#include "event/event.h"
#include "plan/target.h"

/* Checks all events against all rules. `force` skips rules that only protect from useless results. Returns 0,
 * or -1 with the refusal of the first rule that is broken. Without a table of the host's CPU, little is
 * refused, because nothing is known of its PMU. */
int rules_check(const struct events *events, const struct target *target, struct host *host, bool force,
		struct refusal *refusal);

/* The number of registers of this kind per core, and the value that the event needs in one. `name` is a kind
 * that a core's threads share: "off-core register", "load-latency threshold", "branch filter". Returns 0 if
 * the event needs none. */
size_t rules_register(const struct event *event, const char *name, struct host *host, __u64 *value);
