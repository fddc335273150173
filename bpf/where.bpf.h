/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The condition of --where. User space sets it before loading, so the verifier knows each comparison and
 * removes the others.
 *
 * A file includes this after table.bpf.h and task.bpf.h.
 */
#pragma once

const volatile __u32 nr_where; /* 0: every sample is wanted */
const volatile struct where_term where[WHERE_TERMS];

/* What only the caller knows of a sample; zero where it does not. */
struct where_sample {
	__u64 ip, period, address, latency, source;
};

static __always_inline __u64 comm_word(int i)
{
	__u64 comm[2] = {}; /* Linux 6.1 writes nothing behind the word in which a name ends */

	bpf_get_current_comm(comm, sizeof(comm));
	return comm[i];
}

static __always_inline __u64 where_value(__u32 field, const struct where_sample *sample)
{
	switch (field) {
	case WHERE_IP:
		return sample->ip;
	case WHERE_PID:
		return current_ids() >> 32;
	case WHERE_TID:
		return (__u32)current_ids();
	case WHERE_CPU:
		return bpf_get_smp_processor_id();
	case WHERE_CGROUP:
		return bpf_get_current_cgroup_id();
	case WHERE_COMM:
		return comm_word(0);
	case WHERE_COMM_END:
		return comm_word(1);
	case WHERE_PERIOD:
		return sample->period;
	case WHERE_ADDRESS:
		return sample->address;
	case WHERE_LATENCY:
		return sample->latency;
	default:
		return sample->source;
	}
}

static __always_inline int where_holds(const volatile struct where_term *term,
				       const struct where_sample *sample)
{
	__u64 value = where_value(term->field, sample) & term->mask;

	switch (term->op) {
	case WHERE_EQUAL:
		return value == term->value;
	case WHERE_LESS:
		return value < term->value;
	default:
		return value > term->value;
	}
}

/* Returns whether the sample is unwanted. */
static __noinline int where_leaves_out(const struct where_sample *sample)
{
	__u32 next = 0;

#pragma clang loop unroll(full)
	for (__u32 i = 0; i < WHERE_TERMS; i++)
		if (i < nr_where && next == i)
			next = where_holds(&where[i], sample) ? where[i].yes : where[i].no;
	return next == WHERE_UNWANTED;
}

/* Counts an unwanted sample. */
static __always_inline void where_count(struct generation_head *generation, __u64 period)
{
	generation->filtered++;
	generation->period_of_filtered += period;
}
