// SPDX-License-Identifier: GPL-2.0-only
/* pauses NUMBER: prints the ticks of the TSC in which it pauses so many times, in a loop of three instructions. */
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

int main(int argc, char **argv)
{
	unsigned long number = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
	unsigned long long began = __rdtsc();

	__asm__ volatile("1: pause\n\tdec %0\n\tjnz 1b" : "+r"(number));
	printf("%llu\n", __rdtsc() - began);
	return 0;
}
