/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stream of samples beside a table: one ring per CPU in an array map that user space maps. A program
 * writes over the oldest samples and never waits for the reader.
 *
 * A file includes this after it has defined struct key. User space makes the map only if `stream` is set.
 */
#pragma once

#include "wake.bpf.h"

#include <bpf/bpf_helpers.h>

/* Each sample is also written into the CPU's ring, with its keys. Set before loading. */
const volatile _Bool stream;

/* The number of samples of a ring minus one. Set before loading. */
const volatile __u32 ring_mask = RING_SAMPLES_FEWEST - 1;

struct sample {
	struct sample_head head;
	struct key key;
};

struct ring {
	struct ring_head head;
	struct sample samples[RING_SAMPLES_MOST]; /* of which user space makes ring_mask + 1 */
};

/* What each sample has beside its key; `stream_branches`: bytes of its branches. Set before loading. */
const volatile _Bool stream_registers, stream_stacks;
const volatile __u32 stream_branches;

#define RING_ARRAY(name, element)                                                                            \
	struct {                                                                                             \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                            \
		__uint(map_flags, BPF_F_MMAPABLE);                                                           \
		__uint(max_entries, 1); /* user space makes it as many as it needs */                        \
		__type(key, __u32);                                                                          \
		__type(value, element);                                                                      \
	} name SEC(".maps")

RING_ARRAY(rings, struct ring);
RING_ARRAY(ring_registers, struct ring_registers);
RING_ARRAY(ring_stacks, struct ring_stack);
RING_ARRAY(ring_branches, struct ring_branches);

/* The functions for what is large are not inlined, for the stack: see table_begin(). */
static __noinline int put_registers(struct bpf_perf_event_data *ctx, __u32 at)
{
	struct ring_registers *registers = bpf_map_lookup_elem(&ring_registers, &at);

	if (!registers)
		return 0;
#pragma unroll
	for (__u32 i = 0; i < RING_REGISTERS; i++)
		registers->words[i] = ((const __u64 *)&ctx->regs)[i];
	return 0;
}

/* Copies the stack out of the area where stack_of() has found or stored it. */
static __noinline int put_stack(__u32 at, __u32 area, __u32 id)
{
	struct ring_stack *to = bpf_map_lookup_elem(&ring_stacks, &at);
	const struct stacks *stacks = bpf_map_lookup_elem(&stack_areas, &area);
	const struct stored_stack *from;
	__u32 nr;

	if (!to || !stacks)
		return 0;
	to->id = id;
	if (id < STACK_FIRST)
		return 0;
	from = (const void *)&stacks->words[(id - STACK_FIRST) & (STACK_WORDS - 1)];
	nr = from->kernel_frames + from->user_frames;
	if (nr > max_stack)
		nr = max_stack;
	bpf_probe_read_kernel(&to->hash, sizeof(*from) + nr * sizeof(from->frames[0]), from);
	return 0;
}

static __noinline int put_branches(struct bpf_perf_event_data *ctx, __u32 at)
{
	struct ring_branches *branches = bpf_map_lookup_elem(&ring_branches, &at);
	long bytes;

	if (!branches)
		return 0;
	bytes = bpf_read_branch_records(ctx, branches->list, stream_branches, 0);
	branches->bytes = bytes < 0 ? 0 : bytes;
	return 0;
}

/* What is measured of a sample; members that are not are zero. */
struct measured {
	__u64 address, latency, period, physical;
};

/* `which`: the generation that the key's stack is in. */
static __always_inline void ring_put(struct bpf_perf_event_data *ctx, const struct measured *measured,
				     const struct key *key, __u32 which)
{
	__u32 at, cpu = bpf_get_smp_processor_id();
	struct ring *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct sample *sample;

	if (!ring)
		return;
	sample = &ring->samples[ring->head.written & ring_mask];
	sample->head.time = bpf_ktime_get_ns();
	sample->head.address = measured->address;
	sample->head.latency = measured->latency;
	sample->head.period = measured->period;
	sample->head.physical = measured->physical;
	sample->key = *key;
	at = cpu * (ring_mask + 1) + (ring->head.written & ring_mask);
	if (stream_registers)
		put_registers(ctx, at);
	if (stream_stacks)
		put_stack(at, 2 * cpu + (which & 1), key->stack);
	if (stream_branches)
		put_branches(ctx, at);
	barrier();
	ring->head.written++;
	if (!(ring->head.written & FILLING(ring_mask)))
		wake_reader();
}
