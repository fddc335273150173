// SPDX-License-Identifier: GPL-2.0-only
/*
 * faults N [CHUNK]: exactly N minor page faults in touch(). Each touches a new page of a mapping
 * without huge pages. The pages are given back every CHUNK pages (default 1000), so that memory
 * does not grow.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline)) static void touch(volatile char *page)
{
	*page = 1;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000, chunk = argc > 2 ? atol(argv[2]) : 1000;
	long size = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, chunk * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return 1;
	madvise(pages, chunk * size, MADV_NOHUGEPAGE);
	while (n > 0) {
		for (long i = 0; i < chunk && n > 0; i++, n--)
			touch(pages + i * size);
		madvise(pages, chunk * size, MADV_DONTNEED);
	}
	return 0;
}
