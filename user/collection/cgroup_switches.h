/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts of many cgroups by the counters of whole CPUs, read where a CPU goes over from one cgroup to
 * another: bpf/cgroups.bpf.c. Takes one descriptor a CPU beside the counters', whatever the number of
 * cgroups. A task that is moved to another cgroup while it runs takes along what its CPU has counted since
 * its last switch.
 */
#ifndef NHMTAP_CGROUP_SWITCHES_H
#define NHMTAP_CGROUP_SWITCHES_H

#include <stddef.h>
#include <linux/types.h>

#include "count.h"
#include "host/host.h"

struct cgroup_switches;

/* For so many events. The caller owns *switches up to cgroup_switches_close(). Returns 0 or -errno: E2BIG of
 * too many events, EPERM without CAP_BPF and CAP_PERFMON, others from kernels that can't (before Linux 5.13).
 */
int cgroup_switches_open(struct cgroup_switches **switches, size_t events, const struct host *host);
void cgroup_switches_close(struct cgroup_switches *switches);

/* The bytes that it will take in the kernel. */
size_t cgroup_switches_bytes(size_t events, const struct host *host);

/* Begins with a CPU, whose counters are these, one an event, -1: none; to be called before they are enabled.
 * Returns 0 or -errno. */
int cgroup_switches_join(struct cgroup_switches *switches, int cpu, const int *fds);

/* A CPU has gone offline. What was counted there stays. */
void cgroup_switches_leave(struct cgroup_switches *switches, int cpu);

/* Adds what has been counted on each CPU since its last switch, to the cgroup that is current there. */
void cgroup_switches_gather(struct cgroup_switches *switches);

/* Calls for each CPU's sums of each cgroup, an event's behind each other; ids from CGROUP_NO_CGROUP
 * on are those of enum cgroup_last. */
typedef void (*cgroup_sums_fn)(void *context, __u64 id, const struct count *counts);
void cgroup_switches_each(const struct cgroup_switches *switches, cgroup_sums_fn each, void *context);

/* Forgets the sums of a cgroup that is gone. */
void cgroup_switches_release(struct cgroup_switches *switches, __u64 id);

/* How many switches there were up to the last gathering, and at how many the kernel did not run the program:
 * what was counted around those is of CGROUP_MISSED. */
void cgroup_switches_account(const struct cgroup_switches *switches, __u64 *all, __u64 *missed);

#endif
