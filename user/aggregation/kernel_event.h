/* SPDX-License-Identifier: GPL-2.0-only */
/* Where BPF programs find what the kernel knows of their event. */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

/* Offsets in the running kernel's struct perf_event, in bytes. */
struct kernel_event {
	__u32 interrupts; /* hw.interrupts */
	__u32 id;
	__u32 count;
};

/* Finds them all. Returns false if the kernel has no BTF, or other types; then they are zero, which is the
 * offset of none of them. */
bool kernel_event_find(struct kernel_event *event);
