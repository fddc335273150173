/* SPDX-License-Identifier: GPL-2.0-only */
/* Aggregation by struct key, which a file defines before it includes this, in a per-CPU hash map: the obvious
 * way to write it. */
#pragma once

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

struct value {
	__u64 samples;
	__u64 period;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct key);
	__type(value, struct value);
} hashed SEC(".maps");

static __always_inline void add(const struct key *key, __u64 period)
{
	struct value *value = bpf_map_lookup_elem(&hashed, key), first = {};

	if (!value) {
		bpf_map_update_elem(&hashed, key, &first, BPF_NOEXIST);
		value = bpf_map_lookup_elem(&hashed, key);
	}
	if (value) {
		value->samples++;
		value->period += period;
	}
}
