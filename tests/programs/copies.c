// SPDX-License-Identifier: GPL-2.0-only
/*
 * copies N: loads variables of which each thread has its own copy, N times each, in the ways that the code of
 * a library finds them. LIBRARY leaves out what is not in the library, and REST what is.
 *
 *   sum_exported   one that another file could have, too: `low` and `high`
 *   sum_own        those of this file alone: `low`, and elements of an array
 *   sum_initial    one at a distance from the thread pointer that is known at the start: `high`
 *   sum_behind     one by its address, in a function of its own: `low`
 */
#include <stdlib.h>

#define APART __attribute__((noinline))

long sum_exported(long n), sum_own(long n), sum_initial(long n), sum_behind(long n);

#ifndef REST
struct pair {
	long low, high;
};

__thread volatile struct pair exported = {1, 2};
static __thread volatile struct pair own = {3, 4};
static __thread volatile int own_list[16];
__thread volatile struct pair initial __attribute__((tls_model("initial-exec"))) = {5, 6};

APART long sum_exported(long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += exported.low + exported.high;
	return sum;
}

APART long sum_own(long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += own.low + own_list[3];
	return sum;
}

APART long sum_initial(long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += initial.high;
	return sum;
}

APART long sum_behind(long n)
{
	volatile long *low = &initial.low;
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += *low;
	return sum;
}
#endif

#ifndef LIBRARY
long result;

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000;

	result = sum_exported(n) + sum_own(n) + sum_initial(n) + sum_behind(n);
	return 0;
}
#endif
