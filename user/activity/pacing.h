/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes the sampling periods of an activity's events while it runs: see session/cpu_share.h. Before and
 * after a change, each sample is weighted with the count it stands for. On CPUs, what was counted towards the
 * next sample before a change is added to that sample, because the kernel begins a new period
 * (__perf_event_period(), kernel/events/core.c). For threads it is in no sample, like the rest at the end of
 * a run: less than a period.
 *
 * Copies of an event that other tasks have inherited keep the period that was set when they were made: the
 * kernel changes only the event itself (PERF_EVENT_IOC_PERIOD).
 */
#pragma once

#include <jansson.h>
#include <linux/types.h>

#include "aggregation/aggregation.h"
#include "session/cpu_share.h"

struct activity;
struct pacing;

/*
 * Must be called before the BPF programs are loaded. `aggregations` has one for each event of the plan, NULL
 * for an event that takes no samples; the caller owns them. Returns NULL if the session's cost is not
 * limited.
 */
struct pacing *pacing_new(struct activity *activity, struct aggregation **aggregations);
void pacing_release(struct pacing *pacing);

/* Must be called after the events at a place were opened and attached, while they are disabled. */
void pacing_join(struct pacing *pacing, size_t place);

/* The argument for cpu_share_join(). NULL if `pacing` is. */
const struct sampled_part *pacing_part(const struct pacing *pacing);

/*
 * For the account of an event's samples. `period`: the kernel's current one, 0 if it adapts it to a
 * frequency. `count`: the event's count when the period was set. `samples`: the number of samples expected
 * until then. `changes`: number of changes.
 */
struct paced {
	__u64 period;
	__u64 count, samples;
	__u64 changes;
};
struct paced pacing_of(const struct pacing *pacing, size_t event);

/* Adds the member `share` to an interval's record: the share, what was used of it, and the current period. */
void pacing_put(struct pacing *pacing, size_t event, json_t *record);
