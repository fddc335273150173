// SPDX-License-Identifier: GPL-2.0-only
#include "naming/pool.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Many pools stay small, so a new block is as large as all before it, within these bounds. */
#define BLOCK_LEAST 1024
#define BLOCK_MOST  16384

struct pool_block {
	struct pool_block *next;
	size_t used, size;
	alignas(max_align_t) char data[];
};

void *pool_take(struct pool *pool, size_t size)
{
	struct pool_block *block = pool->blocks;
	void *taken;

	size = (size + alignof(max_align_t) - 1) & -alignof(max_align_t);
	if (!block || block->size - block->used < size) {
		size_t room = pool->bytes < BLOCK_LEAST ? BLOCK_LEAST : pool->bytes;

		room = room > BLOCK_MOST ? BLOCK_MOST : room;
		room = size > room ? size : room;
		block = xcalloc(1, sizeof(*block) + room);
		block->size = room;
		block->next = pool->blocks;
		pool->blocks = block;
		pool->bytes += sizeof(*block) + room;
	}
	taken = block->data + block->used;
	block->used += size;
	return taken;
}

char *pool_text(struct pool *pool, const char *text, size_t length)
{
	return memcpy(pool_take(pool, length + 1), text, length);
}

void pool_release(struct pool *pool)
{
	for (struct pool_block *block = pool->blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	*pool = (struct pool){0};
}
