// SPDX-License-Identifier: GPL-2.0-only
/*
 * Aggregates the taken branches in the branch stack (last branch record) that comes with each sample: from
 * where to where, how often, how often mispredicted, and the straight-line code between one branch and the
 * next. Single samples are not kept.
 */
#include "vmlinux.h"
#ifdef STACKS
#include "stack.bpf.h"
#endif
#include "task.bpf.h"
#include "words.bpf.h"

/* The keys of entries; see profile.bpf.c. */
const volatile _Bool by_edge, by_range, by_pid, by_cgroup, by_comm;
#ifdef STACKS /* without a stack, key and value fit into a cache line */
const volatile _Bool by_stack;
#endif

struct key {
	entry_kind_t kind; /* enum branch_kind */
	number_t pid;
	address_t from;
	address_t to;
	cgroup_id_t cgroup;
	comm_t comm;
#ifdef STACKS
	stack_id_t stack; /* of the sample that the branch came with */
	padding_t padding;
#endif
};

/* Begins like struct value_head. Key and value together fill a cache line if the key has no stack. */
struct value {
	__u64 samples;
	__u64 period;
};

/* The key's members behind kind, pid, from and to are often unused; then only the first three words are
 * hashed and compared. */
#ifdef STACKS
#define KEY_WORDS (sizeof(struct key) / 8)
#else
#define KEY_WORDS (by_cgroup || by_comm ? sizeof(struct key) / 8 : 3)
#endif
#include "table.bpf.h"
#include "where.bpf.h"

/* The kernel copies the branches of a sample here: 1536 bytes, more than fit on a program's stack (512). */
struct stack {
	struct branch branches[BRANCHES_MOST];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack);
} stacks SEC(".maps");

/* What all entries of one sample share. */
struct sample {
	struct key key; /* the members that are the same in all of its entries */
	__u64 hash;	/* of these members */
	number_t pid;
	number_t depth; /* branches in its stack */
	__u64 period;
};

static __always_inline int is_user(__u64 address)
{
	return (__s64)address >= 0;
}

static __always_inline void take_identity(struct sample *sample)
{
	struct key *key = &sample->key;

	sample->pid = current_ids() >> 32;
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

/* Completes the key and returns its hash. A user address is valid in its process only, so the process is part
 * of the key even if user space shows processes together. */
static __always_inline __u64 complete_key(struct sample *sample, __u32 kind, __u64 from, __u64 to)
{
	struct key *key = &sample->key;
	int of_process = kind != BRANCH_STACK && (is_user(from) || is_user(to));
	__u64 identity;

	identity = (__u64)(by_pid || of_process ? sample->pid : 0) << 32 | kind;
	set_word(&key->kind, identity);
	key->from = from;
	key->to = to;
	/* Two words are mixed into one: the bits in which they differ do not overlap, and each word hashed
	 * costs a nanosecond. */
	return hash_word(hash_word(sample->hash ^ identity, from), to);
}

static __always_inline void add(struct table *table, __u32 which, struct sample *sample, __u32 kind,
				__u64 from, __u64 to)
{
	__u64 hash = complete_key(sample, kind, from, to);

	table_add_further(table, which, &sample->key, hash, sample->period);
}

/* Adds the code between the target of one branch and the next branch. It was executed in a straight line
 * unless an interrupt or a system call came in between that is missing from the branch stack. */
static __always_inline void add_range(struct table *table, __u32 which, struct sample *sample, __u64 begin,
				      __u64 end)
{
	int straight = begin <= end && is_user(begin) == is_user(end);

	add(table, which, sample, straight ? BRANCH_RANGE : BRANCH_BROKEN, straight ? begin : 0,
	    straight ? end : 0);
}

/* Adds the requested entries for the i-th branch of the stack; branch 0 is the newest. */
static __always_inline void add_branch(struct table *table, __u32 which, struct sample *sample,
				       const struct stack *stack, __u32 i)
{
	const struct branch *branch = &stack->branches[i], *before;

	if (by_edge)
		add(table, which, sample, branch->flags & BRANCH_MISPREDICTED ? BRANCH_MISSED : BRANCH_EDGE,
		    branch->from, branch->to);
	if (by_range && i + 1 < BRANCHES_MOST && i + 1 < sample->depth) {
		before = &stack->branches[i + 1];
		add_range(table, which, sample, before->to, branch->from);
	}
}

/* Branches that one call adds: where the kernel protects returns from speculation, a call costs half as much
 * as adding a branch. */
#define BRANCHES_A_CALL 4

/* Adds the branches from the first one on. The function is not static, so the kernel verifies it once instead
 * of once for each branch and each path that leads to a call: on Linux 6.1 that is 2,600 steps for by_range
 * instead of 168,000. */
__noinline int add_branches(struct table *table, __u32 which, struct sample *sample,
			    const struct stack *stack, __u32 first)
{
	if (!table || !sample || !stack || first >= BRANCHES_MOST)
		return -1;
#pragma clang loop unroll(disable)
	for (__u32 n = 0; n < BRANCHES_A_CALL; n++) {
		__u32 i = first + n;

		barrier_var(i); /* else another register is compared than the one that indexes */
		if (i >= BRANCHES_MOST || i >= sample->depth)
			break;
		add_branch(table, which, sample, stack, i);
	}
	return 0;
}

static __noinline int left_out(struct bpf_perf_event_data *ctx, struct generation_head *generation,
			       __u64 period)
{
	struct where_sample sample = {.ip = ctx->regs.rip, .period = period};

	if (!where_leaves_out(&sample))
		return 0;
	where_count(generation, period);
	return 1;
}

static __always_inline void take_sample(struct bpf_perf_event_data *ctx, struct table *table, __u32 which,
					struct stack *stack)
{
	long bytes = bpf_read_branch_records(ctx, stack, sizeof(*stack), 0);
	struct sample sample = {};
	__u64 hash, period = period_of(ctx, table);

	table_see_throttling(ctx, table, which);
	if (nr_where && left_out(ctx, &table->generations[which & 1], period))
		return;
	if (bytes < 0) {
		table->generations[which].stack_failed++;
		table->generations[which].period_of_full += period;
		return;
	}
	sample.period = period;
	sample.depth = (__u32)bytes / sizeof(stack->branches[0]);
	take_identity(&sample);
#ifdef STACKS
	if (by_stack) {
		sample.key.stack = stack_of(ctx, which);
		sample.hash = hash_word(sample.hash, sample.key.stack);
	}
#endif
	hash = complete_key(&sample, BRANCH_STACK, sample.depth, 0);
	if (!table_add(table, which, &sample.key, hash, period))
		return;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < BRANCHES_MOST && i < sample.depth; i += BRANCHES_A_CALL)
		add_branches(table, which, &sample, stack, i);
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct table *table = table_of_this_cpu();
	__u32 zero = 0;
	struct stack *stack = bpf_map_lookup_elem(&stacks, &zero);

	if (!table || !stack)
		return 0;
	table_begin(table);
	take_sample(ctx, table, table_enter(table), stack);
	table_leave(table);
	/* 0: perf writes no record of the sample into the event's ring. */
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
