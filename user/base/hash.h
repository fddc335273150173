/* SPDX-License-Identifier: GPL-2.0-only */
/* A hash of bytes, for tables in memory only: it is not the same on other machines. */
#pragma once

#include <stddef.h>
#include <string.h>
#include <linux/types.h>

static inline __u64 hash_bytes(const void *bytes, size_t size)
{
	const char *at = bytes;
	__u64 hash = size, word = 0;

	for (; size >= sizeof(word); size -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	if (size) {
		word = 0;
		memcpy(&word, at, size);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash;
}
