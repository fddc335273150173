/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The periods of an activity's events, where they are changed while it runs: see session/cpu_share.h. Each
 * sample weighs what it stands for, before a change and after it. What a CPU has counted towards the next
 * sample at a change is carried over to it, as the kernel begins a new period (__perf_event_period(),
 * kernel/events/core.c). That of a thread is in no sample, as at the end of a run: less than a period.
 *
 * Copies of an event that other tasks have inherited keep the period that held when they were made: the
 * kernel changes only the event itself (PERF_EVENT_IOC_PERIOD).
 */
#ifndef NHMTAP_PACING_H
#define NHMTAP_PACING_H

#include <jansson.h>
#include <linux/types.h>

#include "collection/aggregation.h"
#include "session/cpu_share.h"

struct activity;
struct pacing;

/* Before anything is loaded; one aggregation an event of the plan, NULL for one that takes no samples.
 * Returns NULL where the session has no share to keep. The aggregations stay the caller's. */
struct pacing *pacing_new(struct activity *activity, struct aggregation **aggregations);
void pacing_release(struct pacing *pacing);

/* The events are open at a place, attached and disabled. */
void pacing_join(struct pacing *pacing, size_t place);

/* For cpu_share_join(). */
const struct sampled_part *pacing_part(const struct pacing *pacing);

/* For an event's account: the period that holds, 0 where the kernel sets it by the frequency; since when, as
 * its count; and how many samples there were to be before, by other periods. */
struct paced {
	__u64 period;
	__u64 count, samples;
	__u64 changes;
};
struct paced pacing_of(const struct pacing *pacing, size_t event);

/* Adds to an interval's record what held: the member `share`. */
void pacing_put(struct pacing *pacing, size_t event, json_t *record);

#endif
