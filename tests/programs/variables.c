// SPDX-License-Identifier: GPL-2.0-only
/*
 * variables FILE: stores to pages of variables and of memory of each kind, and loads from a constant, for the
 * first time. Each gives one fault at a known offset, by store() or load(). FILE has at least four pages, and
 * is mapped.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE  4096
#define PAGES 4

char zeros[PAGES][PAGE] __attribute__((aligned(PAGE)));
char filled[PAGES][PAGE] __attribute__((aligned(PAGE))) = {"filled"};
static const char constant[PAGES][PAGE] __attribute__((aligned(PAGE), used)) = {"constant"};
static char hidden[PAGES][PAGE] __attribute__((aligned(PAGE)));

__attribute__((noinline)) static void load(volatile const char *at)
{
	(void)*at;
}

__attribute__((noinline)) static void store(volatile char *at)
{
	*at = 1;
}

/* The offset in the k-th page. */
static long place(int k)
{
	return k * PAGE + 24 * (k + 1);
}

static void store_all(char *pages)
{
	for (int k = 0; k < PAGES; k++)
		store(pages + place(k));
}

static char *from_page_on(volatile char *at)
{
	return (char *)(((uintptr_t)at + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;
	/* It lies far below what the kernel has made of the stack at first. */
	volatile char *deep = alloca(64 * PAGE);

	store_all(zeros[0]);
	store_all(filled[0]);
	store_all(hidden[0]);
	store_all(from_page_on(deep));
	store_all(from_page_on(sbrk(64 * PAGE)));
	store_all(mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	store_all(mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
	/* The kernel maps the pages of a file around the first one that is loaded from. */
	load(&constant[0][place(0)]);
	return 0;
}
