// SPDX-License-Identifier: GPL-2.0-only
/* Counts samples and the occurrences that they stand for, by the code and the task where they were taken. */
#include "vmlinux.h"
#include "stack.bpf.h"
#include "task.bpf.h"

/* Which members of the key are used; the others stay zero. User space sets these before loading, so that the
 * verifier removes the code of those that are off. */
const volatile _Bool by_ip, by_cgroup, by_pid, by_tid, by_cpu, by_comm, by_stack;

struct key {
	address_t ip;
	cgroup_id_t cgroup;
	number_t pid;
	number_t tid;
	number_t cpu;
	stack_id_t stack;
	comm_t comm;
};

/* Begins like struct value_head. */
struct value {
	__u64 samples;
	__u64 period;
};

#define KEY_WORDS (sizeof(struct key) / 8)
#include "ring.bpf.h"
#include "table.bpf.h"
#include "where.bpf.h"

/* Neither is inlined, for the stack of on_sample(): see table_begin(). The first that is called keeps the
 * period. */
static __noinline int left_out(struct bpf_perf_event_data *ctx, struct table *table, __u32 which)
{
	struct where_sample sample = {
		.ip = ctx->regs.rip, .period = period_of(ctx, table), .address = ctx->addr};

	table->head.period = sample.period;
	if (!where_leaves_out(&sample))
		return 0;
	where_count(&table->generations[which & 1], sample.period);
	return 1;
}

/* The table then has one entry, of all samples. */
static __noinline int put_sample(struct bpf_perf_event_data *ctx, struct table *table, struct key *key,
				 __u32 which)
{
	struct measured measured = {.address = ctx->addr};

	if (!nr_where)
		table->head.period = period_of(ctx, table);
	measured.period = table->head.period;
	ring_put(ctx, &measured, key, which);
	*key = (struct key){};
	return 0;
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct table *table = table_of_this_cpu();
	struct key key = {};
	__u64 hash = 0;
	__u32 which;

	if (!table)
		return 0;
	table_begin(table);
	if (by_ip) {
		key.ip = ctx->regs.rip;
		hash = hash_word(hash, key.ip);
	}
	if (by_cgroup) {
		key.cgroup = bpf_get_current_cgroup_id();
		hash = hash_word(hash, key.cgroup);
	}
	if (by_pid || by_tid) {
		__u64 ids = current_ids();

		ids = (by_pid ? ids >> 32 : 0) | (by_tid ? ids << 32 : 0);
		set_word(&key.pid, ids);
		hash = hash_word(hash, ids);
	}
	if (by_cpu) {
		__u32 cpu = bpf_get_smp_processor_id();

		set_word(&key.cpu, cpu);
		hash = hash_word(hash, cpu);
	}
	if (by_comm) {
		bpf_get_current_comm(key.comm, sizeof(key.comm));
		hash = hash_word(hash, *(__u64 *)&key.comm[0]);
		hash = hash_word(hash, *(__u64 *)&key.comm[8]);
	}

	which = table_enter(table);
	table_see_throttling(ctx, table, which);
	if (nr_where && left_out(ctx, table, which)) {
		table_leave(table);
		return 0;
	}
	if (by_stack) {
		__u32 stack = stack_of(ctx, which);

		set_word(&key.cpu, (__u64)stack << 32 | key.cpu);
		hash = hash_word(hash, stack);
	}
	if (stream) {
		put_sample(ctx, table, &key, which);
		hash = 0;
	}
	table_add(table, which, &key, hash, nr_where || stream ? table->head.period : period_of(ctx, table));
	table_leave(table);
	/* 0: perf writes no record of the sample into the event's ring. */
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
