/* SPDX-License-Identifier: GPL-2.0-only */
/* Operations on keys, which consist of 64-bit words. */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "shared.h"

/* Orders the compiler's stores; x86 keeps them in that order. */
#define barrier() asm volatile("" ::: "memory")

#define likely(condition)   __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

/* Fibonacci hashing: the upper bits of the product mix all bits of the word. */
static __always_inline __u64 hash_word(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 32);
}

/* Sets two adjacent 32-bit members by one store: keys are compared by words, and a load of a word that two
 * stores have written has to wait until both have reached the cache. */
static __always_inline void set_word(__u32 *members, __u64 word)
{
	__builtin_memcpy(__builtin_assume_aligned(members, sizeof(word)), &word, sizeof(word));
}

#define KEY_WORDS_MOST 16

/* Whether two keys, made of words, are equal. Has one branch for all words: this code is rarely in the cache,
 * and then each branch costs more than the loads. */
static __always_inline int words_equal(const __u64 *a, const __u64 *b, int words)
{
	__u64 difference = 0;

#pragma unroll
	for (int i = 0; i < KEY_WORDS_MOST; i++)
		if (i < words)
			difference |= a[i] ^ b[i];
	return !difference;
}
