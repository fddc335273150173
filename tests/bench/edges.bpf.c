// SPDX-License-Identifier: GPL-2.0-only
/* The edges of stacks.bpf.c in a per-CPU hash map, which is the obvious way to count them. With EDGES 0 the
 * stacks are made but not used. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "made_up.bpf.h"

#ifndef EDGES
#define EDGES 1
#endif

struct edge {
	__u64 pid;
	__u64 from;
	__u64 to;
};

struct value {
	__u64 samples;
	__u64 period;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct edge);
	__type(value, struct value);
} edges SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64[3 * 16]);
} stacks SEC(".maps");

static __always_inline void add(__u64 pid, __u64 from, __u64 to, __u64 period)
{
	struct edge edge = {.pid = pid, .from = from, .to = to};
	struct value *value = bpf_map_lookup_elem(&edges, &edge), first = {};

	if (!value) {
		bpf_map_update_elem(&edges, &edge, &first, BPF_NOEXIST);
		value = bpf_map_lookup_elem(&edges, &edge);
	}
	if (value) {
		value->samples++;
		value->period += period;
	}
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	__u64 pid = bpf_get_current_pid_tgid() >> 32;
	__u32 zero = 0;
	__u64 *stack = bpf_map_lookup_elem(&stacks, &zero);

	if (!stack)
		return 0;
	made_up_stack(stack, 24 * 16);
#pragma clang loop unroll(disable)
	for (int i = 0; EDGES && i < 16; i++)
		add(pid, stack[3 * i], stack[3 * i + 1], ctx->sample_period);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
