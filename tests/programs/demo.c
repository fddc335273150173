// SPDX-License-Identifier: GPL-2.0-only
/* `make demo` profiles this: two functions, of which one takes about three times as long as the
 * other. */

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
