/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an errno of the kernel means for what was asked, on this host, and the smallest change that
 * mends it. Pure: the same facts give the same sentence. Sources: perf_event_open(2), bpf(2),
 * kernel/events/core.c and arch/x86/events/ of Linux 6.1.
 */
#ifndef NHMTAP_DENIAL_H
#define NHMTAP_DENIAL_H

#include "host/host.h"
#include "plan/plan.h"
#include "refusal.h"

/* perf_event_open has failed for this event of the plan with `error`, where an event takes
 * `instances` descriptors (one a CPU and thread). Always returns -1. */
int open_denied(struct refusal *refusal, struct host *host, const struct plan *plan,
		const struct event *event, int error, size_t instances);

/* Loading or attaching a BPF program has failed with `error`; `log` is what the kernel or libbpf
 * said last, "" if nothing. Always returns -1. */
int bpf_denied(struct refusal *refusal, const struct host *host, const char *step, int error,
	       const char *log);

#endif
