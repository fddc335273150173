// SPDX-License-Identifier: GPL-2.0-only
/* What the kernel takes to call a program on a sample at all: the program that nhmtap's is compared
 * with. Like nhmtap's, it lets nothing be written to a ring. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx __attribute__((unused)))
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
