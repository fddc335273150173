// SPDX-License-Identifier: GPL-2.0-only
/* Does what its first argument says, for the sanitizers to find or not to find. */
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *kept;
static int row[4] = {1, 2, 3, 4};
static const char *volatile text = "abc";
static volatile int four = 4, most = INT_MAX;

/* A hundred, because a register or the stack may still have the address of one. */
__attribute__((noinline)) static void lose(void)
{
	for (int i = 0; i < 100; i++)
		*(volatile char *)malloc(7) = 'x';
}

int main(int argc, char **argv)
{
	const char *what = argv[1];

	if (!strcmp(what, "keep"))
		kept = malloc(7);
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
