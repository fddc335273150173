/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of an aggregation: open addressing over a fixed number of slots, one table a CPU, in an
 * array map that user space maps. No map call is made while a sample is handled but the lookup of
 * the CPU's own table, which the kernel inlines: bpf() calls and helpers that change maps make the
 * kernel skip programs on that CPU without a word (bpf_prog_active, kernel/events/core.c).
 *
 * Programs on one CPU never run inside each other (the same counter sees to that), so nothing here
 * is atomic. Readers may see a value between two of its members' updates; totals only grow, so the
 * next reading makes up for it.
 */
#ifndef NHMTAP_TABLE_BPF_H
#define NHMTAP_TABLE_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "shared.h"

/* Orders the compiler's stores; x86 keeps them in that order, and others' readers pair with it. */
#define barrier() asm volatile("" ::: "memory")

#define likely(condition) __builtin_expect(!!(condition), 1)

/* Fibonacci hashing: the upper bits of the product mix all bits of the word. */
static __always_inline __u64 hash_word(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 32);
}

/* Sets two neighbouring members of 32 bits by one store: keys are compared by words, and a load that
 * two stores have to serve waits until both are in the cache. */
static __always_inline void set_word(__u32 *members, __u64 word)
{
	__builtin_memcpy(members, &word, sizeof(word));
}

#define KEY_WORDS_MOST 16

/* Whether two keys, made of words, are equal. One branch for all of them: in code that is as cold as
 * this, each branch costs more than the loads. */
static __always_inline int words_equal(const __u64 *a, const __u64 *b, int words)
{
	__u64 difference = 0;

#pragma unroll
	for (int i = 0; i < KEY_WORDS_MOST; i++)
		if (i < words)
			difference |= a[i] ^ b[i];
	return !difference;
}

/*
 * Defines struct table, the map "tables", table_add() and table_add_further() for struct key and struct
 * value, which the file has defined. A value begins with samples and period, the count and the sum of
 * periods of the samples of its key; a slot is free as long as it has none. table_add() adds a sample to
 * a key's, taking a slot for a key that is new, and returns the value for what else is to be added to
 * it; or NULL if all slots of the key are taken by others, which it counts. table_add_further() does so
 * for entries that a sample makes besides; see entry_kind_t.
 *
 * There are no totals to keep beside: what the slots and those without a slot sum up to is the total,
 * and a store less into another cache line is an eighth of what it all costs.
 */
#define DEFINE_TABLE() DEFINE_TABLE_OF(sizeof(struct key) / 8)

/* The same, where only so many words at the keys' beginning are ever told apart in this run. */
#define DEFINE_TABLE_OF(key_words)                                                                 \
	_Static_assert(sizeof(struct key) % 8 == 0 && sizeof(struct key) / 8 <= KEY_WORDS_MOST,    \
		       "keys are compared word by word");                                          \
	struct slot {                                                                              \
		struct key key;                                                                    \
		struct value value;                                                                \
	} __attribute__((aligned(64))); /* a cache line, where it fits */                          \
	struct table {                                                                             \
		struct table_head head;                                                            \
		__u32 order[TABLE_SLOTS]; /* the slots in the order in which they were taken */    \
		struct slot slots[TABLE_SLOTS];                                                    \
	};                                                                                         \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(map_flags, BPF_F_MMAPABLE);                                                 \
		__uint(max_entries, 1); /* user space makes it the number of CPUs */               \
		__type(key, __u32);                                                                \
		__type(value, struct table);                                                       \
	} tables SEC(".maps");                                                                     \
                                                                                                   \
	static __always_inline int keys_equal(const struct key *a, const struct key *b)            \
	{                                                                                          \
		return words_equal((const __u64 *)a, (const __u64 *)b, key_words);                 \
	}                                                                                          \
                                                                                                   \
	/*                                                                                         \
	 * Not the usual case: the first slot is free, or another key's. Gives the slot's index,  \
	 * or -1. The kernel verifies a function that is not static by itself, not once more for   \
	 * each call and state that leads to it.                                            \
	 */                                                                                        \
	__noinline int table_search(struct table *table, const struct key *key, __u32 hash)        \
	{                                                                                          \
		if (!table || !key)                                                                \
			return -1;                                                                 \
		_Pragma("nounroll") for (__u32 i = 1; i <= TABLE_PROBES; hash += i++)              \
		{                                                                                  \
			__u32 index = hash & (TABLE_SLOTS - 1);                                    \
			struct slot *slot = &table->slots[index];                                  \
			__u64 used = table->head.used;                                             \
                                                                                                   \
			if (slot->value.samples) {                                                 \
				if (keys_equal(&slot->key, key))                                   \
					return index;                                              \
				continue;                                                          \
			}                                                                          \
			slot->key = *key;                                                          \
			table->order[used & (TABLE_SLOTS - 1)] = index;                            \
			barrier();                                                                 \
			table->head.used = used + 1;                                               \
			return index;                                                              \
		}                                                                                  \
		return -1;                                                                         \
	}                                                                                          \
                                                                                                   \
	static __always_inline struct slot *table_find(struct table *table, const struct key *key, \
						       __u32 hash)                                 \
	{                                                                                          \
		struct slot *slot = &table->slots[hash & (TABLE_SLOTS - 1)];                       \
		int index;                                                                         \
                                                                                                   \
		barrier_var(key); /* stays in memory: registers would spill it a second time */    \
		if (likely(slot->value.samples && keys_equal(&slot->key, key)))                    \
			return slot;                                                               \
		index = table_search(table, key, hash);                                            \
		return index < 0 ? NULL : &table->slots[index & (TABLE_SLOTS - 1)];                \
	}                                                                                          \
                                                                                                   \
	static __always_inline struct value *table_add(struct table *table, const struct key *key, \
						       __u32 hash, __u64 period)                   \
	{                                                                                          \
		struct slot *slot = table_find(table, key, hash);                                  \
                                                                                                   \
		if (!slot) {                                                                       \
			table->head.table_full++;                                                  \
			table->head.period_of_full += period;                                      \
			return NULL;                                                               \
		}                                                                                  \
		slot->value.samples++;                                                             \
		slot->value.period += period;                                                      \
		return &slot->value;                                                               \
	}                                                                                          \
                                                                                                   \
	static __always_inline __attribute__((unused)) void                                        \
	table_add_further(struct table *table, const struct key *key, __u32 hash)                  \
	{                                                                                          \
		struct slot *slot = table_find(table, key, hash);                                  \
                                                                                                   \
		if (slot)                                                                          \
			slot->value.samples++;                                                     \
		else                                                                               \
			table->head.further_lost++;                                                \
	}

/* Takes a value of 32 bits into a maximum_t. `interval` is the object's variable of this name, which
 * user space counts up with each reading; mapped memory too. */
static __always_inline __attribute__((unused)) void take_maximum(__u64 *maximum, __u32 interval,
								 __u64 value)
{
	__u64 word = MAXIMUM(interval, value >> 32 ? ~0U : value);

	maximum = &maximum[interval & 1];
	if (word > *maximum)
		*maximum = word;
}

/* The table of the CPU that the program runs on. */
#define TABLE_OF_THIS_CPU()                                                                        \
	({                                                                                         \
		__u32 this_cpu = bpf_get_smp_processor_id();                                       \
                                                                                                   \
		(struct table *)bpf_map_lookup_elem(&tables, &this_cpu);                           \
	})

#endif
