/* SPDX-License-Identifier: GPL-2.0-only */
/* Clocks in whole nanoseconds. */
#pragma once

#include <stdbool.h>
#include <time.h>
#include <linux/types.h>

static inline __u64 timespec_ns(const struct timespec *time)
{
	return time->tv_sec * 1000000000ULL + time->tv_nsec;
}

static inline struct timespec timespec_of(__u64 ns)
{
	return (struct timespec){ns / 1000000000, ns % 1000000000};
}

/* Whether a time was set at all. CLOCK_MONOTONIC has 0 seconds in the first after the machine was started, so
 * the nanoseconds count too. */
static inline bool timespec_is_set(const struct timespec *time)
{
	return time->tv_sec || time->tv_nsec;
}

/* Reads a clock of clock_gettime(2); 0 on failure. */
static inline __u64 clock_ns(clockid_t clock)
{
	struct timespec now = {0};

	clock_gettime(clock, &now);
	return timespec_ns(&now);
}

/* CLOCK_MONOTONIC in seconds: cheap, and at most some ms late. */
static inline time_t clock_seconds(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE) / 1000000000;
}

/* The pause in ns before something is tried again: at first a second, then twice the pause before, at most a
 * minute. */
static inline __u64 pause_after(__u64 before_ns)
{
	const __u64 least = 1000000000ULL, most = 60 * least;

	return !before_ns ? least : 2 * before_ns < most ? 2 * before_ns : most;
}

/*
 * How far CLOCK_REALTIME is ahead of a clock that can't be set: of CLOCK_BOOTTIME, which goes on while the
 * machine is suspended, or of CLOCK_MONOTONIC. The two clocks are read one after the other, so the difference
 * may be wrong by up to `within`. They are read again if the thread seems to have lost its CPU meanwhile.
 */
struct clock_lead {
	__s64 ns;
	__u64 within;
};

#define CLOCKS_WITHIN_NS 10000

static inline struct clock_lead clock_lead(clockid_t clock)
{
	struct clock_lead best = {.within = ~0ULL};

	for (int i = 0; i < 4 && best.within > CLOCKS_WITHIN_NS; i++) {
		__u64 before = clock_ns(clock), now = clock_ns(CLOCK_REALTIME),
		      within = clock_ns(clock) - before;

		if (within < best.within)
			best = (struct clock_lead){now - before, within};
	}
	return best;
}

/* The same moment by CLOCK_REALTIME, as far as it was not set since. */
static inline struct timespec clock_realtime_of(const struct timespec *monotonic)
{
	return timespec_of(timespec_ns(monotonic) + clock_lead(CLOCK_MONOTONIC).ns);
}
