// SPDX-License-Identifier: GPL-2.0-only
/*
 * pages N: touches N pages for the first time, page k at offset 72 * (k % 32). Each gives one fault
 * at a known address: its own page, line 72 * (k % 32) / 64 of it, and a known offset in the line.
 * Prints in hex the address of the first page, and the start and the end of the function that
 * touches them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE 4096

__attribute__((noinline, section("touching"))) static void touch(volatile char *at)
{
	*at = 1;
}

extern char __start_touching[], __stop_touching[];

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 64;
	char *pages = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || madvise(pages, n * PAGE, MADV_NOHUGEPAGE))
		return 1;
	printf("%p %p %p\n", (void *)pages, (void *)__start_touching, (void *)__stop_touching);
	fflush(stdout);
	for (long k = 0; k < n; k++)
		touch(pages + k * PAGE + 72 * (k % 32));
	return 0;
}
