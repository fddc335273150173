// SPDX-License-Identifier: GPL-2.0-only
/* `make demo` profiles this: two functions, of which one takes about three times as long as the
 * other. Each step waits for the one before, in a register: an addition to memory takes one cycle on
 * some CPUs, and five on others. */

static volatile unsigned long sink;

static unsigned long small_loop(unsigned long number)
{
	for (int i = 0; i < 250000; i++)
		number = number * 6364136223846793005 + 1;
	return number;
}

static unsigned long large_loop(unsigned long number)
{
	for (int i = 0; i < 750000; i++)
		number = number * 6364136223846793005 + 1;
	return number;
}

int main(void)
{
	for (int i = 0; i < 100; i++)
		sink = large_loop(small_loop(sink));
	return 0;
}
