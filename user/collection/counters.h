/* SPDX-License-Identifier: GPL-2.0-only */
/* The events of a plan, opened on its target through libperf, to be switched and read. */
#ifndef NHMTAP_COUNTERS_H
#define NHMTAP_COUNTERS_H

#include <linux/types.h>
#include <sys/types.h>

#include "host/host.h"
#include "plan/plan.h"
#include "refusal.h"

struct counters;

/* A count and the times without which it says little. Times are sums over CPUs and threads. */
struct count {
	__u64 value;
	__u64 enabled_ns;
	__u64 running_ns; /* less than enabled_ns where the event shared its counter */
};

/* What the count would be had the event run all the time that it was enabled: an estimate, and the
 * count itself where it did. Only of one that ran. */
double count_scaled(const struct count *count);

/*
 * Opens every event of the plan on every CPU and thread of its target; child is the command's
 * process, 0 if there is none. All are disabled. The caller owns *counters up to counters_close().
 * Returns 0, or -1 with the refusal filled in and nothing left open.
 */
int counters_open(struct counters **counters, const struct plan *plan, pid_t child,
		  struct host *host, struct refusal *refusal);
void counters_close(struct counters *counters);

/* Some descriptors are kept free while counters and what is attached to them are opened; from here on
 * they may be used. */
void counters_free_descriptors(void);

/* Switches all events, and the copies that children have inherited. Returns 0 or -errno. */
int counters_enable(struct counters *counters);
int counters_disable(struct counters *counters);

/* The count of an event so far, summed over its CPUs, threads and their children. Returns 0 or
 * -errno. */
int counters_read(struct counters *counters, size_t event, struct count *count);

/* The descriptors of an event, one a CPU and thread: how many, and each. */
size_t counters_instances(const struct counters *counters);
int counters_fd(const struct counters *counters, size_t event, size_t instance);

/* Threads that appeared while the events were being opened and may not be followed. */
size_t counters_unfollowed(const struct counters *counters);

#endif
