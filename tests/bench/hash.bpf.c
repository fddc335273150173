// SPDX-License-Identifier: GPL-2.0-only
/* The same aggregation by pid and ip in a per-CPU hash map. */
#include <linux/types.h>

struct key {
	__u64 ip;
	__u64 pid;
};

#include "hashed.bpf.h"

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct key key = {.ip = ctx->regs.rip, .pid = bpf_get_current_pid_tgid() >> 32};

	add(&key, ctx->sample_period);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
