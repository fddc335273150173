/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of an aggregation: open addressing over a fixed number of slots, one table per CPU, in an array
 * map that user space maps. Unless the table is filling (wake.bpf.h), the only map operation while a sample
 * is handled is the lookup of the CPU's own table, which the kernel inlines: bpf() calls and helpers that
 * change maps make the kernel silently skip other programs on that CPU (bpf_prog_active,
 * kernel/events/core.c).
 *
 * Programs on one CPU never nest (the same counter sees to that), so what a program writes needs no atomic
 * operations. User space selects which of the table's two generations a program writes: see struct
 * table_head.
 *
 * A file includes this after it has defined struct key, struct value and KEY_WORDS, the number of words at
 * the beginning of a key that are used in this run. A value begins like struct value_head; a slot is free as
 * long as its value has no samples.
 *
 * There are no separate totals. The total is the sum of all slots and of the samples without a slot. Each
 * cache line that a sample need not write saves an eighth of its cost.
 */
#pragma once

#include "wake.bpf.h"
#include "words.bpf.h"

#include <bpf/bpf_helpers.h>

_Static_assert(sizeof(struct key) % 8 == 0 && sizeof(struct key) / 8 <= KEY_WORDS_MOST,
	       "keys are compared word by word");

struct slot {
	struct key key;
	struct value value;
} __attribute__((aligned(64))); /* a cache line, if it fits */

/* Of `slots` and of `order`, the first half is generation 0. */
struct table {
	struct table_head head;
	struct generation_head generations[2];
	__u32 order[2 * TABLE_SLOTS]; /* a generation's slots, in the order in which they were taken */
	struct slot slots[2 * TABLE_SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* user space makes it the number of CPUs */
	__type(key, __u32);
	__type(value, struct table);
} tables SEC(".maps");

/* Set before loading: see aggregation_distance(). */
const volatile __u32 period_least, period_beyond;

/* Set before loading. `paced`: user space changes the event's period while it runs. `timed`: some runs of the
 * program are timed. */
const volatile _Bool paced, timed;

/* Set before loading: the offset of hw.interrupts in the kernel's struct perf_event; 0: nobody asks for it.
 * User space takes it from the kernel's BTF (aggregation/throttling.c): a relocated access here would make
 * every program need that, and bpf_cast_to_kern_ctx() needs CAP_SYS_ADMIN before Linux 6.2. */
const volatile __u32 interrupts_offset;

/* Set before loading: the offsets of id and count in the kernel's struct perf_event; 0: the samples' own
 * periods are right. See weight_by_count(). */
const volatile __u32 id_offset, count_offset;

/* Set before loading: of twice as many events the first counts can be stored before one of them is dropped.
 */
const volatile __u32 counts_step;

/* Of struct bpf_perf_event_data_kern, include/linux/perf_event.h. */
#define CONTEXT_EVENT 16

/*
 * What events had counted at their last samples, by the kernel's number of the event (perf_event.id). A copy
 * that a task has inherited has a number of its own, which goes along where the kernel exchanges the events
 * of two tasks (perf_event_context_sched_out(), kernel/events/core.c). The programs of one event run one
 * after the other, so a value needs no lock. Events of ended tasks are the first that are dropped. User space
 * makes this map only if it is used.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* user space makes it COUNTS_OF() */
	__type(key, __u64);
	__type(value, __u64);
} counts SEC(".maps");

/* The table of the CPU that the program runs on. */
static __always_inline struct table *table_of_this_cpu(void)
{
	__u32 this_cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&tables, &this_cpu);
}

/* Begins a run. The time is not returned: a caller would need to keep it on the stack, and on_sample() of
 * profile.bpf.c has just as much there as the kernel (since 6.13) leaves on its own stack. Programs with 64
 * bytes or more get a stack of their own, which is rarely in the cache: BPF_PRIV_STACK_MIN_SIZE,
 * kernel/bpf/verifier.c. */
static __always_inline void table_begin(struct table *table)
{
	if (timed && !(table->head.turns / 2 & (TIMED_ONE_IN - 1)))
		table->head.timed_since = bpf_ktime_get_ns();
}

/*
 * Notes that the first count of an event was stored. Returns whether that of an earlier sample of it may have
 * been dropped. The kernel numbers events as they come, so one whose number is above all that had been stored
 * by a certain time was stored after it, if at all: the last 2 * counts_step are still there.
 *
 * CPUs may overwrite each other's `newest`, which lacks a few events then, of thousands.
 */
static __always_inline _Bool was_dropped(__u64 id)
{
	__u32 first_cpu = 0;
	struct table *shared = bpf_map_lookup_elem(&tables, &first_cpu);
	struct table_head *head;
	__u64 stepped;

	if (!shared)
		return 1;
	head = &shared->head;
	if (id > head->newest)
		head->newest = id;
	__sync_fetch_and_add(&head->first_counts, 1);
	stepped = head->stepped;
	/* Another CPU may step between the two loads: then the difference is negative. */
	if ((__s64)(head->first_counts - stepped) >= (__s64)counts_step &&
	    __sync_val_compare_and_swap(&head->stepped, stepped, head->first_counts) == stepped) {
		head->newest_before = head->newest_then;
		head->newest_then = head->newest;
	}
	return id <= head->newest_before;
}

/*
 * Returns what the event has counted since its last sample. With a frequency, a sample of an event that the
 * kernel counts in software tells the period of the time after it (perf_swevent_event() and
 * perf_swevent_set_period(), kernel/events/core.c).
 *
 * The first sample stands for all that was counted before it. If the count of an earlier one may have been
 * dropped, it is no more than the period that it tells, so that little is weighed twice.
 *
 * Not inlined, for the stack of on_sample(): see table_begin().
 */
static __noinline __u64 weight_by_count(struct bpf_perf_event_data *ctx, struct table *table)
{
	__u64 period = ctx->sample_period, event = 0, id = 0, count = 0, since, *last;

	if (!table)
		return 0;
	if (bpf_probe_read_kernel(&event, sizeof(event), (const char *)ctx + CONTEXT_EVENT) ||
	    bpf_probe_read_kernel(&id, sizeof(id), (const char *)event + id_offset) ||
	    bpf_probe_read_kernel(&count, sizeof(count), (const char *)event + count_offset))
		return period;
	last = bpf_map_lookup_elem(&counts, &id);
	if (last) {
		since = count - *last;
		*last = count;
		return since;
	}
	if (bpf_map_update_elem(&counts, &id, &count, BPF_NOEXIST))
		return 0; /* the next sample stands for it */
	if (!was_dropped(id))
		return count;
	table->head.counts_dropped = 1;
	return count < period ? count : period;
}

/* Returns how many occurrences the sample stands for. Must be called once per sample. */
static __always_inline __u64 period_of(struct bpf_perf_event_data *ctx, struct table *table)
{
	__u64 period = ctx->sample_period;

	if (count_offset)
		return weight_by_count(ctx, table);
	if (period < period_least)
		period = period_least;
	if (!paced)
		return period + period_beyond;
	if (period == table->head.period_opened)
		period = table->head.period_held;
	period += table->head.carried;
	table->head.carried = 0;
	table->head.weighed += period; /* what the kernel's counter has counted, too */
	return period + period_beyond;
}

/*
 * Enters the table; table_leave() leaves it. Returns the generation that the sample is to go into. The
 * addition is locked, so that no later load is done before it: either user space sees that the program is
 * inside, or the program sees the generation that user space has selected.
 */
static __always_inline __u32 table_enter(struct table *table)
{
	__sync_fetch_and_add(&table->head.turns, 1);
	return *(volatile __u64 *)&table->head.generation & 1;
}

static __always_inline void table_leave(struct table *table)
{
	barrier();
	table->head.turns++;
	if (timed && table->head.timed_since) {
		table->head.timed_runs++;
		table->head.timed_ns += bpf_ktime_get_ns() - table->head.timed_since;
		table->head.timed_since = 0;
	}
}

/* The kernel has set this mark (MAX_INTERRUPTS, kernel/events/core.c) when it runs the program for the sample
 * at which it throttles the event. Not inlined, for the stack of on_sample(): see table_begin(). */
static __noinline int count_throttling(struct bpf_perf_event_data *ctx, struct generation_head *generation)
{
	__u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (const char *)ctx + CONTEXT_EVENT);
	bpf_probe_read_kernel(&word, sizeof(word), (const char *)word + interrupts_offset);
	if (word == ~0ULL)
		generation->throttled++;
	return 0;
}

/* Must be called once per sample by the programs of events whose throttling is counted. */
static __always_inline __attribute__((unused)) void table_see_throttling(struct bpf_perf_event_data *ctx,
									 struct table *table, __u32 which)
{
	if (interrupts_offset)
		count_throttling(ctx, &table->generations[which & 1]);
}

static __always_inline int keys_equal(const struct key *a, const struct key *b)
{
	return words_equal((const __u64 *)a, (const __u64 *)b, KEY_WORDS);
}

/* Returns the index of the first slot of the generation that is tried for a hash. The compiler knows that it
 * is less than the number of slots and would drop the final mask, which the verifier of Linux 6.1 needs. */
static __always_inline __u32 slot_index(__u32 which, __u32 hash)
{
	__u32 index = which * TABLE_SLOTS + (hash & (TABLE_SLOTS - 1));

	barrier_var(index);
	return index & (2 * TABLE_SLOTS - 1);
}

/*
 * The unusual case: the first slot is free or has another key. Returns the index of the key's slot, or -1 if
 * there is none. Not static, so that the kernel verifies it once and not for each path that leads to a call.
 */
__noinline int table_search(struct table *table, __u32 which, const struct key *key, __u32 hash)
{
	struct generation_head *generation;

	if (!table || !key)
		return -1;
	generation = &table->generations[which & 1];
#pragma nounroll
	for (__u32 i = 1; i <= TABLE_PROBES; hash += i++) {
		__u32 index = slot_index(which, hash);
		struct slot *slot = &table->slots[index];

		if (slot->value.samples) {
			if (keys_equal(&slot->key, key))
				return index;
			continue;
		}
		slot->key = *key;
		table->order[slot_index(which, generation->used)] = index;
		generation->used++;
		if (generation->used >= FILLING(TABLE_SLOTS) && !generation->told)
			generation->told = wake_reader();
		return index;
	}
	return -1;
}

static __always_inline struct slot *table_find(struct table *table, __u32 which, const struct key *key,
					       __u32 hash)
{
	struct slot *slot = &table->slots[slot_index(which, hash)];
	int index;

	barrier_var(key); /* keeps the key in memory: in registers it would be spilled a second time */
	if (likely(slot->value.samples && keys_equal(&slot->key, key)))
		return slot;
	index = table_search(table, which, key, hash);
	return index < 0 ? NULL : &table->slots[index & (2 * TABLE_SLOTS - 1)];
}

/* Adds the sample to its key's value, taking a slot if the key is new. Returns the value, so that the caller
 * can add to its other members, or NULL if all slots that the key may have are taken, which is counted. */
static __always_inline struct value *table_add(struct table *table, __u32 which, const struct key *key,
					       __u32 hash, __u64 period)
{
	struct slot *slot = table_find(table, which, key, hash);

	if (!slot) {
		table->generations[which & 1].table_full++;
		table->generations[which & 1].period_of_full += period;
		return NULL;
	}
	slot->value.samples++;
	slot->value.period += period;
	return &slot->value;
}

/* The same for a further entry of a sample; see entry_kind_t. */
static __always_inline __attribute__((unused)) void
table_add_further(struct table *table, __u32 which, const struct key *key, __u32 hash, __u64 period)
{
	struct slot *slot = table_find(table, which, key, hash);

	if (!slot) {
		table->generations[which & 1].further_lost++;
		return;
	}
	slot->value.samples++;
	slot->value.period += period;
}
