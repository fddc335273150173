/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wakes user space before the program's memory is full, so that user space need not look how full it is. A
 * record in this ring has no meaning beyond that. Unlike the helpers that change maps, the ring's does not
 * make the kernel skip other programs, and it wakes from a hardware interrupt of its own (irq_work), so it
 * may be used in an NMI and in the scheduler.
 */
#pragma once

#include "words.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* the least: a page */
} wakes SEC(".maps");

/* Returns whether it worked. In an NMI it fails while another CPU writes to the ring. */
__noinline int wake_reader(void)
{
	__u64 nothing = 0;

	return !bpf_ringbuf_output(&wakes, &nothing, sizeof(nothing), BPF_RB_FORCE_WAKEUP);
}
