// SPDX-License-Identifier: GPL-2.0-only
/*
 * Aggregates loads and their latency by where they found their data (always), and on request by the address
 * that was loaded, the code and the task. The members of a sample are read directly where the kernel tells
 * the program the type of its context (since 6.2), and with probe_read_kernel() elsewhere. One object serves
 * both: it is relocated to the running kernel.
 */
#include "vmlinux.h"
#include "stack.bpf.h"
#include "words.bpf.h"

#include <bpf/bpf_core_read.h>
#include <linux/perf_event.h>

const volatile _Bool by_ip, by_cacheline, by_page, by_cgroup, by_offset, by_pid, by_tid, by_cpu, by_node,
	by_comm, by_phys_page, by_tlb, by_lock, by_stack;

struct key {
	data_source_t source;
	address_t ip;
	address_t cacheline;
	address_t page;
	address_t phys_page;
	cgroup_id_t cgroup;
	number_t pid;
	number_t tid;
	number_t cpu;
	number_t offset; /* of the address in its cache line */
	node_t node;
	tlb_t tlb;
	lock_t lock;
	stack_id_t stack;
	comm_t comm;
};

/* Latencies are in core cycles. Those of the samples, and those of what the samples stand for: with a
 * frequency the periods differ, so the mean of the samples is not that of the loads. */
struct value {
	__u64 samples;
	__u64 period;
	__u64 latency_sum;
	__u64 latency_sum_period;
	maximum_t latency_max;
	log2_histogram_t latency_histogram;
	log2_histogram_t latency_histogram_period;
};

#define KEY_WORDS (sizeof(struct key) / 8)
#include "ring.bpf.h"
#include "table.bpf.h"
#include "task.bpf.h"
#include "where.bpf.h"

#define CACHELINE_MASK 63ULL
#define PAGE_MASK      4095ULL

/* What was measured of a load; members that were not measured are zero. */
struct load {
	__u64 address;
	__u64 latency;
	__u64 source;
	__u64 interrupts; /* of the event in this timer tick: perf_event's hw.interrupts */
	__u64 physical;	  /* physical address; kernels before 6.3 fill it in only after the program has run */
};

/* Members of a sample that were not requested, or not measured, hold leftovers of the kernel's stack. Since
 * Linux 6.1 the sample's flags say which members are valid; older kernels clear the others. */
static __always_inline void keep_measured(struct load *load, __u64 flags)
{
	if (!(flags & PERF_SAMPLE_ADDR))
		load->address = 0;
	if (!(flags & PERF_SAMPLE_WEIGHT_TYPE))
		load->latency = 0;
	if (!(flags & PERF_SAMPLE_DATA_SRC))
		load->source = 0;
	if (!(flags & PERF_SAMPLE_PHYS_ADDR))
		load->physical = 0;
}

static __always_inline __u64 weight_of(const struct perf_sample_data *data)
{
	if (bpf_core_type_exists(union perf_sample_weight___kernel))
		return BPF_CORE_READ(data, weight.full);
	return BPF_CORE_READ((const struct perf_sample_data___v5_11 *)data, weight);
}

static __always_inline void probe_load(struct bpf_perf_event_data *ctx, struct load *load)
{
	const struct bpf_perf_event_data_kern *kernel = (const void *)ctx;
	const struct perf_sample_data *data = BPF_CORE_READ(kernel, data);

	load->latency = weight_of(data);
	load->source = BPF_CORE_READ(data, data_src.val);
	load->interrupts = BPF_CORE_READ(kernel, event, hw.interrupts);
	if (bpf_core_field_exists(data->sample_flags))
		keep_measured(load, BPF_CORE_READ(data, sample_flags));
}

/* Set before loading: the kernel has bpf_cast_to_kern_ctx(). */
const volatile _Bool casts;

/* Takes no call: the verifier replaces the cast by a move, and the accesses by loads. It is not declared as
 * the kernel's function: libbpf would look for it in all modules where the kernel lacks it, which takes
 * CAP_SYS_ADMIN. */
static const struct bpf_perf_event_data_kern *(*cast_to_kernel)(void *ctx) = (void *)CAST_TO_KERNEL;

static __always_inline void read_load(struct bpf_perf_event_data *ctx, struct load *load)
{
	const struct bpf_perf_event_data_kern *kernel;
	const struct perf_sample_data *data;

	load->address = ctx->addr;
	if (!casts) {
		probe_load(ctx, load);
		return;
	}
	kernel = cast_to_kernel(ctx);
	data = kernel->data;
	load->latency = data->weight.full;
	load->source = data->data_src.val;
	load->physical = data->phys_addr;
	load->interrupts = kernel->event->hw.interrupts;
	keep_measured(load, data->sample_flags);
}

/* Returns the node whose memory holds the data if the load was answered from memory. A cache of another
 * package that forwards a clean line does so only for lines whose home is this node: guide, Table 16, code
 * 8. */
static __always_inline __u32 node_of(__u64 source)
{
	const __u64 local = (__u64)PERF_MEM_LVL_LOC_RAM << PERF_MEM_LVL_SHIFT;
	const __u64 remote = (__u64)(PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2) << PERF_MEM_LVL_SHIFT;
	const __u64 forwarded = (__u64)PERF_MEM_LVL_REM_CCE1 << PERF_MEM_LVL_SHIFT |
				(__u64)PERF_MEM_SNOOP_HIT << PERF_MEM_SNOOP_SHIFT;

	if (source & local || (source & forwarded) == forwarded)
		return NODE_IS(bpf_get_numa_node_id());
	if (source & remote)
		return NODE_OTHER | NODE_IS(bpf_get_numa_node_id());
	return NODE_UNKNOWN;
}

/* Returns i with 2^i <= value < 2^(i+1), and the last bucket for all larger values. */
static __always_inline __u32 bucket_of(__u64 value)
{
	__u32 bucket = 0;

	if (value >> LOG2_BUCKETS)
		return LOG2_BUCKETS - 1;
#pragma unroll
	for (__u32 shift = LOG2_BUCKETS / 2; shift; shift /= 2)
		if (value >> shift) {
			value >>= shift;
			bucket += shift;
		}
	return bucket;
}

static __always_inline __u64 location_in_key(struct key *key, const struct load *load, __u64 ip)
{
	__u64 hash;

	key->source = load->source & ~DATA_SRC_ACCESS;
	hash = hash_word(0, key->source);
	if (by_ip) {
		key->ip = ip;
		hash = hash_word(hash, key->ip);
	}
	if (by_cacheline) {
		key->cacheline = load->address & ~CACHELINE_MASK;
		hash = hash_word(hash, key->cacheline);
	}
	if (by_page) {
		key->page = load->address & ~PAGE_MASK;
		hash = hash_word(hash, key->page);
	}
	if (by_phys_page) {
		key->phys_page = load->physical & ~PAGE_MASK;
		hash = hash_word(hash, key->phys_page);
	}
	if (by_offset) {
		key->offset = load->address & CACHELINE_MASK;
		hash = hash_word(hash, key->offset);
	}
	if (by_node) {
		key->node = node_of(load->source);
		hash = hash_word(hash, key->node);
	}
	if (by_tlb) {
		key->tlb = load->source >> DATA_SRC_TLB_SHIFT & DATA_SRC_TLB_MASK;
		hash = hash_word(hash, key->tlb);
	}
	if (by_lock) {
		key->lock = load->source ? load->source >> DATA_SRC_LOCK_SHIFT & DATA_SRC_LOCK_MASK
					 : PERF_MEM_LOCK_NA;
		hash = hash_word(hash, key->lock);
	}
	return hash;
}

static __always_inline __u64 task_in_key(struct key *key, __u64 hash)
{
	if (by_cgroup) {
		key->cgroup = bpf_get_current_cgroup_id();
		hash = hash_word(hash, key->cgroup);
	}
	if (by_pid || by_tid) {
		__u64 ids = current_ids();

		ids = (by_pid ? ids >> 32 : 0) | (by_tid ? ids << 32 : 0);
		set_word(&key->pid, ids);
		hash = hash_word(hash, ids);
	}
	if (by_cpu) {
		key->cpu = bpf_get_smp_processor_id();
		hash = hash_word(hash, key->cpu);
	}
	if (by_comm) {
		bpf_get_current_comm(key->comm, sizeof(key->comm));
		hash = hash_word(hash, *(__u64 *)&key->comm[0]);
		hash = hash_word(hash, *(__u64 *)&key->comm[8]);
	}
	return hash;
}

static __always_inline void add_latency(struct value *value, __u64 latency, __u64 period)
{
	__u32 bucket = bucket_of(latency) & (LOG2_BUCKETS - 1);

	if (!latency) /* not measured: no load takes less than a cycle */
		return;
	value->latency_sum += latency;
	value->latency_sum_period += latency * period;
	if (latency > value->latency_max)
		value->latency_max = latency;
	value->latency_histogram[bucket]++;
	value->latency_histogram_period[bucket] += period;
}

/* Not inlined, for the stack: see take_with_stack(). Takes the members of a load, which has no address then
 * and can stay in registers. */
static __noinline int left_out(struct bpf_perf_event_data *ctx, struct table *table, __u64 address,
			       __u64 latency, __u64 source)
{
	struct where_sample sample = {.ip = ctx->regs.rip,
				      .period = table->head.period,
				      .address = address,
				      .latency = latency,
				      .source = source};

	return where_leaves_out(&sample);
}

static __always_inline void take_sample(struct bpf_perf_event_data *ctx, struct table *table, __u32 which,
					__u32 stack)
{
	struct load load = {};
	struct key key = {};
	struct value *value;
	__u64 hash, period = period_of(ctx, table);

	read_load(ctx, &load);
	/* The kernel sets this mark before it runs the program for the sample at which it throttles the
	 * event. */
	if (load.interrupts == MAX_INTERRUPTS)
		table->generations[which].throttled++;
	if (nr_where) {
		table->head.period = period;
		if (left_out(ctx, table, load.address, load.latency, load.source)) {
			where_count(&table->generations[which], period);
			return;
		}
	}
	hash = location_in_key(&key, &load, ctx->regs.rip);
	hash = task_in_key(&key, hash);
	if (by_stack) {
		key.stack = stack;
		hash = hash_word(hash, key.stack);
	}
	if (stream) { /* the table's key is then the source alone */
		struct measured measured = {load.address, load.latency, period, load.physical};

		ring_put(ctx, &measured, &key, which);
		key = (struct key){.source = load.source & ~DATA_SRC_ACCESS};
		hash = hash_word(0, key.source);
	}

	value = table_add(table, which, &key, hash, period);
	if (value)
		add_latency(value, load.latency, period);
}

/* Called after stack_of() has returned: if both were inlined into one function they would exceed the 512
 * bytes of a program's stack. */
static __noinline int take_with_stack(struct bpf_perf_event_data *ctx, struct table *table, __u32 which,
				      __u32 stack)
{
	take_sample(ctx, table, which, stack);
	return 0;
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct table *table = table_of_this_cpu();
	__u32 which;

	if (!table)
		return 0;
	table_begin(table);
	which = table_enter(table);
	if (by_stack)
		take_with_stack(ctx, table, which, stack_of(ctx, which));
	else
		take_sample(ctx, table, which, 0);
	table_leave(table);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
