/* SPDX-License-Identifier: GPL-2.0-only */
/* What a sample costs the kernel beside the BPF program: the interrupt, and perf's handling of it. */
#ifndef NHMTAP_SAMPLE_COST_H
#define NHMTAP_SAMPLE_COST_H

#include <linux/types.h>

#include "event/event.h"

/*
 * CPU time of a sample of an event of this kind, in ns, as measured now, on this thread: a piece of work is
 * done while an event samples it, and while the same event counts it. The kinds are those that take samples
 * in different ways: clocks by a timer, a core's PMU by its interrupt, all others in the kernel's own code.
 * Where it can't be measured, a cautious estimate. Takes a few ms; each kind is measured once.
 */
__u64 sample_cost(const struct event *event);

#endif
