/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that is freed as a whole. */
#pragma once

#include <stddef.h>

struct pool {
	struct pool_block *blocks;
	size_t bytes; /* allocated so far */
};

/* Returns zeroed memory, aligned for any type. It is valid until pool_release(). */
void *pool_take(struct pool *pool, size_t size);
char *pool_text(struct pool *pool, const char *text, size_t length);
void pool_release(struct pool *pool);
