// SPDX-License-Identifier: GPL-2.0-only
/*
 * ips N: exactly N page faults at N different instructions. The instructions are written to memory
 * one after the other; each reads from the next page of a new mapping.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* mov (%rdi),%al; add $0x1000,%rdi */
static const unsigned char read_page[] = {0x8a, 0x07, 0x48, 0x81, 0xc7, 0x00, 0x10, 0x00, 0x00};

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000;
	long size = n * sizeof(read_page) + 1;
	unsigned char *code = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	/* Pages that are only read are the zero page, and take no memory. */
	char *pages = mmap(NULL, n * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED || pages == MAP_FAILED)
		return 1;
	madvise(pages, n * 4096, MADV_NOHUGEPAGE);
	for (long i = 0; i < n; i++)
		memcpy(code + i * sizeof(read_page), read_page, sizeof(read_page));
	code[size - 1] = 0xc3; /* ret */
	((void (*)(char *))code)(pages);
	return 0;
}
