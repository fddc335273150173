/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs nhmtap once more, with another of its commands: the target of an activity is sampled after it was
 * counted. What samples is that command, as the user would run it. */
#pragma once

#include <jansson.h>

#include "activity/activity.h"
#include "base/arguments.h"

/* Runs a command of nhmtap, with its options, on the activity's target, and waits for its end. Returns the
 * list of its records, a new reference; or NULL with the reason in `why`. A signal that ends the session is
 * passed on, and noted in session->ended_by. */
json_t *again_run(struct activity *activity, const struct arguments *command, char *why, size_t size);

/* The same for a command that samples what occurs so often; its period, which is added to it, gives about
 * `wanted` samples. `occurrences` of 0: nobody knows, so the command's own period is taken. Where the kernel
 * paused the sampling, the command is run again with fewer samples: what occurs densely would be missing
 * among them. */
json_t *again_sample(struct activity *activity, struct arguments *command, double occurrences, double wanted,
		     char *why, size_t size);

/* What people are told of a run that the kernel paused so often, a long long. */
#define PAUSED                                                                                               \
	"less than its part is told of what occurs densely: the kernel paused the sampling %lld times, "     \
	"because it sampled too often"

/* Returns the sum of a member of `samples` over a run's records: "aggregated"; "throttled", which says how
 * often the kernel paused the sampling. */
json_int_t again_sum(const json_t *records, const char *member);
