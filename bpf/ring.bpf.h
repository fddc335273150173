/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stream of samples beside a table: one ring per CPU in an array map that user space maps. A program
 * writes over the oldest samples and never waits for the reader.
 *
 * A file includes this after it has defined struct key. User space makes the map only if `stream` is set.
 */
#ifndef NHMTAP_RING_BPF_H
#define NHMTAP_RING_BPF_H

#include "wake.bpf.h"

#include <bpf/bpf_helpers.h>

/* Each sample is also written into the CPU's ring, with its keys. Set before loading. */
const volatile _Bool stream;

/* The number of samples of a ring minus one. Set before loading. */
const volatile __u32 ring_mask = RING_SAMPLES_LEAST - 1;

struct sample {
	struct sample_head head;
	struct key key;
};

struct ring {
	struct ring_head head;
	struct sample samples[RING_SAMPLES_MOST]; /* of which user space makes ring_mask + 1 */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* user space makes it the number of CPUs if there is a stream */
	__type(key, __u32);
	__type(value, struct ring);
} rings SEC(".maps");

static __always_inline void ring_put(__u64 address, __u64 latency, __u64 period, const struct key *key)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct ring *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct sample *sample;

	if (!ring)
		return;
	sample = &ring->samples[ring->head.written & ring_mask];
	sample->head.time = bpf_ktime_get_ns();
	sample->head.address = address;
	sample->head.latency = latency;
	sample->head.period = period;
	sample->key = *key;
	barrier();
	ring->head.written++;
	if (!(ring->head.written & FILLING(ring_mask)))
		wake_reader();
}

#endif
