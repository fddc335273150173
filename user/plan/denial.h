/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Explains an errno of the kernel: what it means for the request on this host, and the smallest change that
 * mends it. Pure: it depends on the arguments alone. Sources: perf_event_open(2), bpf(2),
 * kernel/events/core.c and arch/x86/events/ of Linux 6.1.
 */
#pragma once

#include "base/refusal.h"
#include "host/host.h"
#include "host/processor.h"
#include "plan/plan.h"

/* Sentences that are used in several places. */
#define REMEDY_SECCOMP_PERF                                                                                  \
	"start the container with --cap-add PERFMON, or with a seccomp profile that allows it"
#define REASON_LOCKDOWN "the kernel is locked down (confidentiality)"
#define REMEDY_USER_NAMESPACE                                                                                \
	"run it outside of the user namespace: as root of the host, not in a rootless container"
#define REMEDY_LOCKDOWN "boot without lockdown=confidentiality"

/* Returns the remedy for a missing capability: `setcap`, which gives it to the program's file, unless that
 * has no effect. */
const char *remedy_by_setcap(const struct host *host, const char *setcap);

/* perf_event_open(2) has failed for this event of the plan with `error`. The event needs `instances`
 * descriptors (one per CPU and thread). Always returns -1. */
int open_denied(struct refusal *refusal, struct host *host, const struct plan *plan,
		const struct event *event, int error, size_t instances);

/* The kernel did not provide a buffer for a branch trace. Always returns -1. */
int trace_denied(struct refusal *refusal, const struct host *host, int error);

/* Loading or attaching a BPF program has failed with `error`. `log` is the last message of the kernel or of
 * libbpf, "" if there is none. Always returns -1. */
int bpf_denied(struct refusal *refusal, const struct host *host, const char *step, int error,
	       const char *log);

/* An event of the cgroup at `path` ("" if there is no hierarchy) could not be opened. Always returns
 * -1. */
int cgroup_denied(struct refusal *refusal, struct host *host, const char *path, int error);

/* An event could be opened and enabled, but it never ran (`ran` is false), or it ran and counted 0. Always
 * returns -1. */
int silent_denied(struct refusal *refusal, const struct host *host, const char *event, bool ran);

/* A register could not be read (msr->error). Always returns -1. */
int msr_denied(struct refusal *refusal, struct host *host, const struct msr *msr);
