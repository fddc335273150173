/* SPDX-License-Identifier: GPL-2.0-only */
/* A reading of an event: its count, and for how long it was counted. */
#pragma once

#include <stdbool.h>
#include <string.h>
#include <linux/types.h>

/* A count with its times, which are sums over CPUs and threads. */
struct count {
	__u64 value;
	__u64 enabled_ns;
	__u64 running_ns; /* less than enabled_ns if the event shared its counter */
};

/* The count scaled to the time that the event was enabled: an estimate, or the count itself if it ran all the
 * time. The event must have run. */
static inline double count_scaled(const struct count *count)
{
	return (double)count->value * count->enabled_ns / count->running_ns;
}

static inline bool count_is_estimate(const struct count *count)
{
	return count->running_ns < count->enabled_ns;
}

/* Why nothing was counted of a target that has done nothing: then 0 is its count. */
#define TARGET_NEVER_RAN  "its target never ran"
#define CGROUPS_NEVER_RAN "nothing ran in its cgroups"

/* Whether 0 is the count of what was not counted, by the reason. */
static inline bool count_is_zero(const char *why)
{
	return !strcmp(why, TARGET_NEVER_RAN) || !strcmp(why, CGROUPS_NEVER_RAN);
}

/* The status of a count, as in records. */
static inline const char *count_status(const struct count *count)
{
	return !count->running_ns ? "not_counted" : count_is_estimate(count) ? "multiplexed" : "counted";
}

static inline void count_add(struct count *sum, const struct count *count)
{
	sum->value += count->value;
	sum->enabled_ns += count->enabled_ns;
	sum->running_ns += count->running_ns;
}

/* The difference of two readings. Never negative: what the kernel has counted, it keeps. */
static inline struct count count_beyond(const struct count *now, const struct count *before)
{
#define BEYOND(member) (now->member > before->member ? now->member - before->member : 0)
	return (struct count){BEYOND(value), BEYOND(enabled_ns), BEYOND(running_ns)};
#undef BEYOND
}
