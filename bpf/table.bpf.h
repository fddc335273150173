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

/* Fibonacci hashing: the upper bits of the product mix all bits of the word. */
static __always_inline __u64 hash_word(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 32);
}

/* Whether two keys, made of words, are equal. */
static __always_inline int words_equal(const __u64 *a, const __u64 *b, int words)
{
#pragma unroll
	for (int i = 0; i < words; i++)
		if (a[i] != b[i])
			return 0;
	return 1;
}

/*
 * Defines struct table, the map "tables", table_place() and table_find() for struct key and struct
 * value, which the file has defined. table_place() returns the value of a key, taking a slot for a
 * key that is new, or NULL if its places are all taken by others. table_find() is for the one entry
 * that stands for the sample, and counts where that has no place.
 */
#define DEFINE_TABLE()                                                                             \
	_Static_assert(sizeof(struct key) % 8 == 0, "keys are compared word by word");            \
	struct slot {                                                                              \
		struct key key;                                                                    \
		struct value value;                                                                \
		__u64 taken;                                                                       \
	};                                                                                         \
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
	static __always_inline struct value *table_place(struct table *table, const struct key *key, \
							 __u32 hash)                               \
	{                                                                                          \
		_Pragma("unroll") for (__u32 i = 0; i < TABLE_PROBES; i++)                         \
		{                                                                                  \
			__u32 index = (hash + i) & (TABLE_SLOTS - 1);                              \
			struct slot *slot = &table->slots[index];                                  \
			__u64 used = table->head.used;                                             \
                                                                                                   \
			if (slot->taken) {                                                         \
				if (words_equal((const __u64 *)&slot->key, (const __u64 *)key,     \
						sizeof(*key) / 8))                                 \
					return &slot->value;                                       \
				continue;                                                          \
			}                                                                          \
			slot->key = *key;                                                          \
			slot->taken = 1;                                                           \
			table->order[used & (TABLE_SLOTS - 1)] = index;                            \
			barrier();                                                                 \
			table->head.used = used + 1;                                               \
			return &slot->value;                                                       \
		}                                                                                  \
		return NULL;                                                                       \
	}                                                                                          \
                                                                                                   \
	static __always_inline struct value *table_find(struct table *table, const struct key *key, \
							__u32 hash)                                \
	{                                                                                          \
		struct value *value = table_place(table, key, hash);                               \
                                                                                                   \
		if (!value)                                                                        \
			table->head.table_full++;                                                  \
		return value;                                                                      \
	}

/* The table of the CPU that the program runs on; counts the run. */
#define TABLE_OF_THIS_CPU(period_of_run)                                                           \
	({                                                                                         \
		__u32 this_cpu = bpf_get_smp_processor_id();                                       \
		struct table *found = bpf_map_lookup_elem(&tables, &this_cpu);                     \
                                                                                                   \
		if (found) {                                                                       \
			found->head.runs++;                                                        \
			found->head.period += (period_of_run);                                     \
		}                                                                                  \
		found;                                                                             \
	})

#endif
