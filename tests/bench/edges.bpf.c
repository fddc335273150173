// SPDX-License-Identifier: GPL-2.0-only
/* The edges of stacks.bpf.c in a per-CPU hash map. With EDGES 0 the stacks are made but not used. */
#include <linux/types.h>

struct key {
	__u64 pid;
	__u64 from;
	__u64 to;
};

#include "hashed.bpf.h"
#include "made_up.bpf.h"

#ifndef EDGES
#define EDGES 1
#endif

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64[3 * 16]);
} stacks SEC(".maps");

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct key key = {.pid = bpf_get_current_pid_tgid() >> 32};
	__u32 zero = 0;
	__u64 *stack = bpf_map_lookup_elem(&stacks, &zero);

	if (!stack)
		return 0;
	made_up_stack(stack, 24 * 16);
#pragma clang loop unroll(disable)
	for (int i = 0; EDGES && i < 16; i++) {
		key.from = stack[3 * i];
		key.to = stack[3 * i + 1];
		add(&key, ctx->sample_period);
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
