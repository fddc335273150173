// SPDX-License-Identifier: GPL-2.0-only
/* What `make demo` profiles: two functions that take time, one about three times as much. */
#include <stdio.h>

static volatile unsigned long sink;

static void small_loop(void)
{
	for (int i = 0; i < 1000000; i++)
		sink += i;
}

static void large_loop(void)
{
	for (int i = 0; i < 3000000; i++)
		sink += i;
}

int main(void)
{
	for (int i = 0; i < 100; i++) {
		small_loop();
		large_loop();
	}
	return 0;
}
