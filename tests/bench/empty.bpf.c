// SPDX-License-Identifier: GPL-2.0-only
/* The program that nhmtap's is compared with: it costs what the kernel takes to call any program on
 * a sample. Like nhmtap's, it keeps the sample out of the ring buffer. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx __attribute__((unused)))
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
