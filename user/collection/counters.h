/* SPDX-License-Identifier: GPL-2.0-only */
/* The events of a plan, opened on its target through libperf, so that they can be enabled, disabled and
 * read. */
#pragma once

#include <linux/types.h>
#include <sys/types.h>

#include "base/count.h"
#include "base/refusal.h"
#include "collection/cgroup_switches.h"
#include "collection/places.h"
#include "host/host.h"
#include "plan/plan.h"

struct counters;

/*
 * Opens every event of the plan at every place of its target. `child` is the command's process, 0 if there is
 * none. All events are disabled. The caller owns *counters up to counters_close(). Returns 0, or -1 with the
 * refusal and nothing left open.
 */
int counters_open(struct counters **counters, const struct plan *plan, pid_t child, struct host *host,
		  struct refusal *refusal);
void counters_close(struct counters *counters);

/* Allows descriptors to be used that were kept free while counters, and what is attached to them, were
 * opened. Must be called after that. */
void counters_free_descriptors(void);

/* Enable or disable all events, including the copies that children have inherited. counters_enable_at()
 * enables the events of a place that was joined, if all others are enabled. Return 0 or -errno. */
int counters_enable(struct counters *counters);
int counters_disable(struct counters *counters);
int counters_enable_at(struct counters *counters, size_t place);

/* Sets the period of an event at a place, or its frequency if it was opened with one. Copies that were
 * inherited keep theirs. Does nothing if the event is not open there. Returns 0 or -errno. */
int counters_set_period(struct counters *counters, size_t event, size_t place, __u64 period);

/* Reads an event and gives its count so far, summed over its places, including the children of its threads.
 * The count never decreases. Returns 0 or -errno. */
int counters_read(struct counters *counters, size_t event, struct count *count);

/* Prepares for reading all events many times, in the cheapest way that the kernel allows. Must be called
 * before they are enabled. */
void counters_expect_readings(struct counters *counters);

/* Reads all events at all places. A count that can't be read keeps its last value. */
void counters_read_all(struct counters *counters);

/* Whether the event shares the core's counters with others of the plan, once these are too many. */
bool counters_take_turns(const struct counters *counters, size_t event);

/* Mixes the order of these turns, so that it is not in step with what is measured: lets one group, chosen at
 * random, have the counters alone until the next call, or all take turns as before; always that if not `mix`.
 * Not in cgroups before Linux 6.12. Must be called right after counters_read_all(). Returns whether a group
 * has them alone now. */
bool counters_mix_turns(struct counters *counters, bool mix);

/* The time in ns in which some counter might wrap twice; all counters must be read at least once in that
 * time. 0: no counter wraps. */
__u64 counters_pace(const struct counters *counters);

/* The reason why an event has stopped being counted early, once for each of its registers, as a constant
 * text; NULL if there is no further reason to report. */
const char *counters_lost(struct counters *counters, size_t event);

/* The count of an event at a place when it was last read, including what it had counted there before its CPU
 * went offline. It never decreases. A pinned event that the kernel has given up (there was no counter for it)
 * has the enabled time that it would have if it had been tried on. */
void counters_last(const struct counters *counters, size_t event, size_t place, struct count *count);

/* All places, including those without open events; and how often a place was opened. */
const struct places *counters_places(const struct counters *counters);
size_t counters_opened(const struct counters *counters);

/* Whether an event is counted at a place while its CPU is online. If several CPUs share a counter, the event
 * is counted on one of them. */
bool counters_has(const struct counters *counters, size_t event, size_t place);

/* The descriptor of an event at a place; -1 if it is not open there. It stays the counters'. */
int counters_fd(const struct counters *counters, size_t event, size_t place);

/* Must be called when a CPU has gone offline: closes its events, and keeps their counts. The kernel does not
 * reopen them when the CPU comes back: perf_event_exit_cpu_context(), kernel/events/core.c. */
void counters_leave(struct counters *counters, int cpu);

/* Whether the enabled time of some CPU's event has stood still between two readings: see `stalled` of struct
 * place. */
bool counters_stalled(const struct counters *counters);

/* Opens the events of a place again, disabled. Returns 0, or -errno with none of them open. */
int counters_join(struct counters *counters, size_t place);

/*
 * Whether the counts of the target's cgroups are added up at switches from one cgroup to another. If not,
 * counters_switches_why() gives the reason; NULL if nobody requested it. After counters_gather(),
 * counters_each_sums() gives the sums of each cgroup that is known, and the caller decides which of the
 * target's cgroups each belongs to: counters_put_cgroup() adds it to that cgroup's count.
 */
bool counters_by_switches(const struct counters *counters);
const char *counters_switches_why(const struct counters *counters);
void counters_gather(struct counters *counters);
void counters_each_sums(const struct counters *counters, cgroup_sums_fn each, void *context);
void counters_put_cgroup(struct counters *counters, size_t i, const struct count *counts);
void counters_last_cgroup(const struct counters *counters, size_t event, size_t i, struct count *count);

/* For the sums of a cgroup that has been removed: counters_release_sums() releases them; counters_keep_sums()
 * adds them permanently to the target's i-th cgroup, which it was in. */
void counters_release_sums(struct counters *counters, __u64 id);
void counters_keep_sums(struct counters *counters, size_t i, const struct count *counts);

/* Adds what a cgroup of the target has counted to another one, and sets its own counts to zero. */
void counters_move_cgroup(struct counters *counters, size_t from, size_t to);

/* The number of switches from one cgroup to another, and how many of them were missed. */
void counters_switches(const struct counters *counters, __u64 *all, __u64 *missed);

/* Must be called when the target has taken in a cgroup as its i-th, in a vacant place or behind all others.
 * What an earlier cgroup has counted in this place stays in the total, but is forgotten if counts are per
 * cgroup. No events are open in the new cgroup yet. */
void counters_take_in_cgroup(struct counters *counters, size_t i);

/* The id of the target's i-th cgroup, whose events are open. */
__u64 counters_cgroup_id(const struct counters *counters, size_t i);

/* Whether the target's i-th cgroup still exists as the one whose events are open. */
bool counters_has_cgroup(const struct counters *counters, size_t i);

/* Must be called when the i-th cgroup has been removed: closes its events, and keeps their counts. */
void counters_leave_cgroup(struct counters *counters, size_t i);

/* Whether the target's folder, in which events are open, has been removed. If so, counters_leave_folder()
 * closes them, and keeps their counts. counters_join() then opens them for all that runs on a CPU. */
bool counters_lost_folder(const struct counters *counters);
void counters_leave_folder(struct counters *counters);

/* Looks for a cgroup at the path of the i-th one. Its events can then be opened with counters_join(). Returns
 * 0 or -errno, ENOENT if there is none. */
int counters_join_cgroup(struct counters *counters, size_t i);

/* The number of threads that appeared while the events were being opened, and that may not be counted. */
size_t counters_unfollowed(const struct counters *counters);

/*
 * Looks which of the target's threads have ended, and which go on without their events: begin_new_exec()
 * (fs/exec.c) takes them away, as if the thread had ended, when it executes a program that changes its rights
 * or that it may not read. A thread that executes a program in a process of several gets the id of the first
 * one, which ends; its events stay its own. Returns the place of a thread of whose id something goes on that
 * is not counted, once: its events were taken away, or it has ended and a thread that is no target has its
 * id; -1: none.
 */
int counters_look_at_threads(struct counters *counters);

/* Whether events were taken away from a thread, and none of the target's others is known to be counted. */
bool counters_taken(const struct counters *counters);

/* The process that the target has by this id, which may be that of any of its threads. */
pid_t counters_process(const struct counters *counters, pid_t id);

/* The id that the thread has got whose id was this one: its process's. 0: it has ended. */
pid_t counters_go_on(struct counters *counters, pid_t was);
