/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts of many cgroups with the counters of whole CPUs, read when a CPU switches from one cgroup to
 * another: bpf/cgroups.bpf.c. Takes one descriptor per CPU in addition to those of the counters, whatever the
 * number of cgroups. If a running task is moved to another cgroup, what its CPU has counted since the last
 * switch is added to the new cgroup, unless the task moves itself, and it is the first in the new cgroup or
 * the last in the old one.
 */
#pragma once

#include <stddef.h>
#include <linux/types.h>

#include "base/count.h"
#include "host/host.h"

struct cgroup_switches;

/* Prepares for this number of events. The caller owns *switches up to cgroup_switches_close(). Returns 0 or
 * -errno: E2BIG for too many events, EPERM without CAP_BPF and CAP_PERFMON, others from kernels that lack a
 * feature (before Linux 5.13). */
int cgroup_switches_open(struct cgroup_switches **switches, size_t events, const struct host *host);
void cgroup_switches_close(struct cgroup_switches *switches);

/* The bytes that the maps for this number of events take in the kernel. */
size_t cgroup_switches_bytes(size_t events, const struct host *host);

/* Starts on a CPU. `fds` has the descriptor of its counter for each event, -1 for none. Must be called before
 * the counters are enabled. Returns 0 or -errno. */
int cgroup_switches_join(struct cgroup_switches *switches, int cpu, const int *fds);

/* Must be called when a CPU has gone offline. What was counted there is kept. */
void cgroup_switches_leave(struct cgroup_switches *switches, int cpu);

/* Adds what each CPU has counted since its last switch to the cgroup that is current there. */
void cgroup_switches_gather(struct cgroup_switches *switches);

/* Calls `each` for the sums of each cgroup on each CPU; `counts` has one element per event. Ids from
 * CGROUP_NO_CGROUP on stand for enum cgroup_last. */
typedef void (*cgroup_sums_fn)(void *context, __u64 id, const struct count *counts);
void cgroup_switches_each(const struct cgroup_switches *switches, cgroup_sums_fn each, void *context);

/* Releases the sums of a cgroup that has been removed. */
void cgroup_switches_release(struct cgroup_switches *switches, __u64 id);

/* Gives the number of switches up to the last gathering, and how many of them the program missed. What was
 * counted up to a missed switch is in CGROUP_MISSED. */
void cgroup_switches_account(const struct cgroup_switches *switches, __u64 *all, __u64 *missed);
