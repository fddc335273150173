// SPDX-License-Identifier: GPL-2.0-only
/*
 * places PLACES [N]: takes N page faults (default: without end) at PLACES different addresses of
 * code in turn. This fills a table of samples by address; faults (tests/programs) takes all at one
 * address.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* movb $1,(%rdi); ret. Compiled functions are aligned to 16 bytes, but fault anywhere in them.
 * These lie at multiples of 5, so that no low bits of the address are the same in all keys. */
static const unsigned char store[] = {0xc6, 0x07, 0x01, 0xc3, 0x90};
#define CHUNK 1000

int main(int argc, char **argv)
{
	long places = argc > 1 ? atol(argv[1]) : 1, n = argc > 2 ? atol(argv[2]) : -1;
	long size = sysconf(_SC_PAGESIZE), place = 0;
	unsigned char *code = mmap(NULL, places * sizeof(store), PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *pages = mmap(NULL, CHUNK * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED || pages == MAP_FAILED || places < 1)
		return 1;
	for (long i = 0; i < places; i++)
		memcpy(code + i * sizeof(store), store, sizeof(store));
	madvise(pages, CHUNK * size, MADV_NOHUGEPAGE);
	while (n) {
		for (long i = 0; i < CHUNK && n; i++, n -= n > 0, place = (place + 1) % places)
			((void (*)(char *))(code + place * sizeof(store)))(pages + i * size);
		madvise(pages, CHUNK * size, MADV_DONTNEED);
	}
	return 0;
}
