/* SPDX-License-Identifier: GPL-2.0-only */
/* Where BPF programs find that the kernel has throttled their event. */
#pragma once

#include <linux/types.h>

/* Returns the offset of hw.interrupts in the running kernel's struct perf_event, in bytes; 0 if it is not
 * known: the kernel has no BTF, or other types. */
__u32 throttling_offset(void);
