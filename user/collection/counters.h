/* SPDX-License-Identifier: GPL-2.0-only */
/* The events of a plan, opened on its target through libperf, to be switched and read. */
#ifndef NHMTAP_COUNTERS_H
#define NHMTAP_COUNTERS_H

#include <linux/types.h>
#include <sys/types.h>

#include "collection/cgroup_switches.h"
#include "collection/places.h"
#include "count.h"
#include "host/host.h"
#include "plan/plan.h"
#include "refusal.h"

struct counters;

/*
 * Opens every event of the plan at every place of its target; child is the command's process, 0 if
 * there is none. All are disabled. The caller owns *counters up to counters_close(). Returns 0, or -1
 * with the refusal filled in and nothing left open.
 */
int counters_open(struct counters **counters, const struct plan *plan, pid_t child, struct host *host,
		  struct refusal *refusal);
void counters_close(struct counters *counters);

/* Some descriptors are kept free while counters and what is attached to them are opened; from here on
 * they may be used. */
void counters_free_descriptors(void);

/* Switches all events, and the copies that children have inherited; or enables those of a place that was
 * joined, if the others are. Returns 0 or -errno. */
int counters_enable(struct counters *counters);
int counters_disable(struct counters *counters);
int counters_enable_at(struct counters *counters, size_t place);

/* Has an event take samples by another period at a place, or by another frequency, as it was opened; its
 * inherited copies do not. Nothing happens where it is not open. Returns 0 or -errno. */
int counters_set_period(struct counters *counters, size_t event, size_t place, __u64 period);

/* The count of an event so far, summed over its places, with the children of its threads. It never
 * becomes less. Returns 0 or -errno. */
int counters_read(struct counters *counters, size_t event, struct count *count);

/* Prepares for reading all events many times, by whatever the kernel allows that makes it cheaper. To be
 * called before they are enabled. */
void counters_expect_readings(struct counters *counters);

/* Reads all events at all places; what can't be read stays as it was. */
void counters_read_all(struct counters *counters);

/* In how many ns some counter might wrap twice, so that all have to be read once in that time; 0: none does.
 */
__u64 counters_pace(const struct counters *counters);

/* Why the count of an event has ended before its time, in words, once for each register; NULL: there is no
 * more to tell. */
const char *counters_lost(struct counters *counters, size_t event);

/* What an event had counted at a place when it was last read, with what it counted there before its CPU
 * went offline. It never becomes less. */
void counters_last(const struct counters *counters, size_t event, size_t place, struct count *count);

/* The places, those without open events among them; and how many were opened, each as often as it
 * was. */
const struct places *counters_places(const struct counters *counters);
size_t counters_opened(const struct counters *counters);

/* Whether an event is counted at a place when its CPU is online: one whose counter is shared is counted
 * on one of the CPUs that share it. */
bool counters_has(const struct counters *counters, size_t event, size_t place);

/* The descriptor of an event at a place, -1: not open there. */
int counters_fd(const struct counters *counters, size_t event, size_t place);

/* A CPU has gone offline: closes the events there, and keeps what they have counted. The kernel does
 * not bring them back with the CPU: perf_event_exit_cpu_context(), kernel/events/core.c. */
void counters_leave(struct counters *counters, int cpu);

/* Whether the clock of an event of some CPU has not moved between two readings: struct place. */
bool counters_stalled(const struct counters *counters);

/* Opens the events at a place again, disabled. Returns 0 or -errno: nothing is open there then. */
int counters_join(struct counters *counters, size_t place);

/*
 * Whether counts of the target's cgroups are summed up at the switches from one to another; if not, why, NULL
 * if nobody asked for it. After gathering, counters_each_sums() gives what is known of each cgroup, and the
 * owner decides what to do with it: counters_put_cgroup() adds to a cgroup's count.
 */
bool counters_by_switches(const struct counters *counters);
const char *counters_switches_why(const struct counters *counters);
void counters_gather(struct counters *counters);
void counters_each_sums(const struct counters *counters, cgroup_sums_fn each, void *context);
void counters_put_cgroup(struct counters *counters, size_t i, const struct count *counts);
void counters_last_cgroup(const struct counters *counters, size_t event, size_t i, struct count *count);

/* What was counted of one that is gone is forgotten; or it is kept for the i-th cgroup, which it was in. */
void counters_release_sums(struct counters *counters, __u64 id);
void counters_keep_sums(struct counters *counters, size_t i, const struct count *counts);

/* Switches from one cgroup to another, and those that were missed. */
void counters_switches(const struct counters *counters, __u64 *all, __u64 *missed);

/* The target has taken in a cgroup in its i-th place, which is vacant or behind all others: what was counted
 * there stays in the sum of all, and is forgotten where cgroups are told apart. Nothing is open there yet. */
void counters_take_in_cgroup(struct counters *counters, size_t i);

/* The id of the target's i-th cgroup, whose events are open. */
__u64 counters_cgroup_id(const struct counters *counters, size_t i);

/* Whether the target's i-th cgroup is still the one whose events are open. */
bool counters_has_cgroup(const struct counters *counters, size_t i);

/* It has gone: closes its events, and keeps what they have counted. */
void counters_leave_cgroup(struct counters *counters, size_t i);

/* A cgroup of its path is looked for, whose events can then be opened with counters_join(). Returns 0 or
 * -errno: ENOENT, there is none. */
int counters_join_cgroup(struct counters *counters, size_t i);

/* Threads that appeared while the events were being opened and may not be followed. */
size_t counters_unfollowed(const struct counters *counters);

#endif
