// SPDX-License-Identifier: GPL-2.0-only
/* The same aggregation by pid and ip in a per-CPU hash map, which is the obvious way to write it.
 * */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

struct key {
	__u64 ip;
	__u64 pid;
};

struct value {
	__u64 samples;
	__u64 period;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct key);
	__type(value, struct value);
} samples SEC(".maps");

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct key key = {.ip = ctx->regs.rip, .pid = bpf_get_current_pid_tgid() >> 32};
	struct value *value = bpf_map_lookup_elem(&samples, &key), first = {};

	if (!value) {
		bpf_map_update_elem(&samples, &key, &first, BPF_NOEXIST);
		value = bpf_map_lookup_elem(&samples, &key);
	}
	if (value) {
		value->samples++;
		value->period += ctx->sample_period;
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
