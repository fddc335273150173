// SPDX-License-Identifier: GPL-2.0-only
/* Has the kernel take a sample's stack, and does nothing with it. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("perf_event")
int on_sample(void *ctx)
{
	__u64 frame;

	bpf_get_stack(ctx, &frame, sizeof(frame), 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
