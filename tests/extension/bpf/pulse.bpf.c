// SPDX-License-Identifier: GPL-2.0-only
/* Samples by the CPU on which they were taken: a minimal aggregation. */
#include "vmlinux.h"
#include "shared.h"

const volatile _Bool by_cpu;

struct key {
	number_t cpu;
	padding_t padding;
};

struct value {
	__u64 samples;
	__u64 period;
};

#define KEY_WORDS (sizeof(struct key) / 8)
#include "table.bpf.h"

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct table *table = table_of_this_cpu();
	struct key key = {};

	if (!table)
		return 0;
	table_begin(table);
	if (by_cpu)
		key.cpu = bpf_get_smp_processor_id();
	table_add(table, table_enter(table), &key, hash_word(0, key.cpu), period_of(ctx, table));
	table_leave(table);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
