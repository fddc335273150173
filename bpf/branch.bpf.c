// SPDX-License-Identifier: GPL-2.0-only
/*
 * Branches that were taken, from the last branch record that comes with a sample: from where to where,
 * how often, how often mispredicted; and the straight code between each two. Nothing of a single
 * sample is kept.
 */
#include "vmlinux.h"
#include "table.bpf.h"

/* Nehalem's. Where a CPU records more, these are the newest. */
#define STACK_DEPTH 16

/* What is told apart; see profile.bpf.c. */
const volatile _Bool by_edge, by_range, by_pid, by_cgroup, by_comm;

/* struct perf_branch_entry without its bit-fields: bit 0 of flags is the first of them. */
struct branch {
	__u64 from;
	__u64 to;
	__u64 flags;
};
#define MISPREDICTED 1

struct key {
	entry_kind_t kind; /* enum branch_kind */
	number_t pid;
	address_t from;
	address_t to;
	cgroup_id_t cgroup;
	comm_t comm;
};

/* Begins as struct value_head does. With the key it fills a cache line. */
struct value {
	__u64 samples;
	__u64 period;
};

/* Beside kind, pid, from and to there is often nothing. */
DEFINE_TABLE_OF(by_cgroup || by_comm ? sizeof(struct key) / 8 : 3)

/* Where the kernel copies a sample's stack to: 384 bytes, too many for a program's own. */
struct stack {
	struct branch branches[STACK_DEPTH];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack);
} stacks SEC(".maps");

/* The sample as its entries see it. */
struct sample {
	struct table *table;
	struct key key; /* what all of its entries have in common */
	__u64 hash;     /* of that */
	number_t pid;
};

static __always_inline int is_user(__u64 address)
{
	return (__s64)address >= 0;
}

static __always_inline void take_identity(struct sample *sample)
{
	struct key *key = &sample->key;

	sample->pid = bpf_get_current_pid_tgid() >> 32;
	if (by_cgroup) {
		key->cgroup = bpf_get_current_cgroup_id();
		sample->hash = hash_word(sample->hash, key->cgroup);
	}
	if (by_comm) {
		bpf_get_current_comm(key->comm, sizeof(key->comm));
		sample->hash = hash_word(sample->hash, *(__u64 *)&key->comm[0]);
		sample->hash = hash_word(sample->hash, *(__u64 *)&key->comm[8]);
	}
}

/* Completes the key, and returns its hash. A user's addresses mean something in their process only,
 * so they are told apart by it even where user space is to show them together. */
static __always_inline __u64 complete_key(struct sample *sample, __u32 kind, __u64 from, __u64 to)
{
	struct key *key = &sample->key;
	int of_process = kind != BRANCH_STACK && (is_user(from) || is_user(to));
	__u64 identity;

	identity = (__u64)(by_pid || of_process ? sample->pid : 0) << 32 | kind;
	set_word(&key->kind, identity);
	key->from = from;
	key->to = to;
	/* Two words in one: what they differ in lies apart, and each word costs a nanosecond. */
	return hash_word(hash_word(sample->hash ^ identity, from), to);
}

static __always_inline void add(struct sample *sample, __u32 kind, __u64 from, __u64 to)
{
	__u64 hash = complete_key(sample, kind, from, to);

	table_add_further(sample->table, &sample->key, hash);
}

/* From the target of one branch the CPU went straight on to the next one, unless an interrupt or a
 * system call came in between and is not in the stack. */
static __always_inline void add_range(struct sample *sample, __u64 begin, __u64 end)
{
	int straight = begin <= end && is_user(begin) == is_user(end);

	add(sample, straight ? BRANCH_RANGE : BRANCH_BROKEN, straight ? begin : 0, straight ? end : 0);
}

/* Enters what is asked for of the stack's first `depth` branches, of which the newest is the first. */
static __always_inline void add_branches(struct sample *sample, const struct branch *branches,
					 __u32 depth)
{
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < STACK_DEPTH; i++) {
		if (i >= depth)
			break;
		if (by_edge)
			add(sample, branches[i].flags & MISPREDICTED ? BRANCH_MISSED : BRANCH_EDGE,
			    branches[i].from, branches[i].to);
		if (by_range && i + 1 < STACK_DEPTH && i + 1 < depth)
			add_range(sample, branches[i + 1].to, branches[i].from);
	}
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct sample sample = {.table = TABLE_OF_THIS_CPU()};
	__u32 zero = 0, depth;
	struct stack *stack = bpf_map_lookup_elem(&stacks, &zero);
	__u64 hash;
	long bytes;

	if (!sample.table || !stack)
		return 0;
	bytes = bpf_read_branch_records(ctx, stack, sizeof(*stack), 0);
	if (bytes < 0) {
		sample.table->head.stack_failed++;
		sample.table->head.period_of_full += ctx->sample_period;
		return 0;
	}
	depth = (__u32)bytes / sizeof(stack->branches[0]);
	take_identity(&sample);
	hash = complete_key(&sample, BRANCH_STACK, depth, 0);
	if (!table_add(sample.table, &sample.key, hash, ctx->sample_period))
		return 0;
	add_branches(&sample, stack->branches, depth);
	/* 0: the sample ends here; nothing is written to a ring. */
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
