/* SPDX-License-Identifier: GPL-2.0-only */
/* Branch stacks as the kernel would give them: 64 of 16 branches each, which take turns. */
#pragma once

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
