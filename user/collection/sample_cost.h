/* SPDX-License-Identifier: GPL-2.0-only */
/* What a sample costs the kernel in addition to the BPF program: the interrupt, and perf's handling of it. */
#pragma once

#include <linux/types.h>

#include "event/event.h"

/*
 * CPU time in ns of a sample of an event of this kind, as measured on the calling thread: the same work is
 * done while an event samples it, and while it only counts. There are three kinds, by how samples are taken:
 * clocks by a timer, a core's PMU by its interrupt, all others in the kernel's own code. If it can't be
 * measured, a cautious estimate is returned. Takes a few ms; each kind is measured once.
 */
__u64 sample_cost(const struct event *event);
