// SPDX-License-Identifier: GPL-2.0-only
/*
 * To be preloaded: the FAIL_AT-th allocation of the program fails, with FAIL_ALL=1 also all that
 * follow. If COUNT_TO names a file, the number of allocations is written there at exit. Programs
 * that it starts are not affected.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t nr, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

static atomic_long count;
static long fail_at, all;
static const char *count_to;

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("FAIL_AT");

	fail_at = at ? atol(at) : 0;
	all = getenv("FAIL_ALL") != NULL;
	count_to = getenv("COUNT_TO");
	unsetenv("LD_PRELOAD");
	count = 0;
}

__attribute__((destructor)) static void end(void)
{
	long total = count;
	FILE *file;

	fail_at = 0;
	file = count_to ? fopen(count_to, "w") : NULL;
	if (!file)
		return;
	fprintf(file, "%ld\n", total);
	fclose(file);
}

static int fails(void)
{
	long number = ++count;

	if (!fail_at || (all ? number < fail_at : number != fail_at))
		return 0;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t nr, size_t size)
{
	return fails() ? NULL : __libc_calloc(nr, size);
}

void *realloc(void *memory, size_t size)
{
	return fails() ? NULL : __libc_realloc(memory, size);
}
