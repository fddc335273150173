// SPDX-License-Identifier: GPL-2.0-only
/* Does what its first argument says, for the sanitizers to find or not to find. */
#include <limits.h>
#include <link.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *kept, *kept_beside[] = {"a", "b"};
static int row[4] = {1, 2, 3, 4};
static const char *volatile text = "abc";
static volatile int four = 4, most = INT_MAX;

/* A hundred, because a register or the stack may still have the address of one. */
__attribute__((noinline)) static void lose(void)
{
	for (int i = 0; i < 100; i++)
		*(volatile char *)malloc(7) = 'x';
}

/* Prints what of the program the search for leaks reads. */
static int print_segments(struct dl_phdr_info *info, size_t size, void *context)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_W)
			printf("%lx %lx\n", info->dlpi_phdr[i].p_vaddr,
			       info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
	return 1; /* the first is the program */
}

int main(int argc, char **argv)
{
	const char *what = argv[1];

	if (!strcmp(what, "keep"))
		kept = malloc(7);
	else if (!strcmp(what, "keep beside a text"))
		kept_beside[1] = malloc(7);
	else if (!strcmp(what, "show segments"))
		dl_iterate_phdr(print_segments, NULL);
	else if (!strcmp(what, "let a library keep"))
		return !hcreate(10);
	else if (!strcmp(what, "lose"))
		lose();
	else if (!strcmp(what, "read beyond an array"))
		printf("%d\n", row[four]);
	else if (!strcmp(what, "read beyond a text"))
		printf("%d\n", text[four]);
	else if (!strcmp(what, "count too far"))
		printf("%d\n", most + four);
	return 0;
}
