// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads several counters of the CPU that it runs on in one run. It is attached to nothing: user space runs it
 * on a CPU (BPF_PROG_TEST_RUN with BPF_F_TEST_RUN_ON_CPU), which takes one interrupt there, whereas read(2)
 * of another CPU's counters takes one for each counter.
 *
 * Such a run does not raise bpf_prog_active, so samples that are taken meanwhile still reach their programs.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "counters.bpf.h"
#include "shared.h"

/* Has as many entries as the map of counters. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counter_reading);
} readings SEC(".maps");

static long read_one(__u32 i, const __u32 *first)
{
	__u32 index = *first + i;
	struct counter_reading *reading = bpf_map_lookup_elem(&readings, &index);

	if (!reading)
		return 1;
	/* The first three members are laid out like struct bpf_perf_event_value. */
	reading->error = bpf_perf_event_read_value(&counters, index, (struct bpf_perf_event_value *)reading,
						   sizeof(struct bpf_perf_event_value));
	return 0;
}

/* Its arguments are the index of the first counter and the number of counters. */
SEC("raw_tracepoint")
int read_counters(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 first = ctx->args[0];

	bpf_loop(ctx->args[1], read_one, &first, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
