// SPDX-License-Identifier: GPL-2.0-only
/* branch.bpf.c unchanged, by edge, with made-up branch stacks, because page faults have none. There
 * are 64 stacks of 16 branches each, which take turns. With EDGES 0 they are made but not used. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#ifndef EDGES
#define EDGES 1
#endif

const volatile _Bool by_edge = EDGES;

static __u64 made;

static __always_inline long made_up_stack(void *buffer, __u32 size)
{
	__u64 base = 0x400000 + (made++ & 63) * 4096, *words = buffer;

#pragma unroll
	for (int i = 0; i < 16; i++) {
		words[3 * i] = base + 64 * i + 32;
		words[3 * i + 1] = base + 64 * i;
		words[3 * i + 2] = 2; /* predicted */
	}
	return size;
}

#define bpf_read_branch_records(context, buffer, size, flags) made_up_stack(buffer, size)
#include "branch.bpf.c"
