// SPDX-License-Identifier: GPL-2.0-only
/*
 * places N: loads known fields of data that no global and no variable in a register leads to, N times each:
 *
 *   sum_local      a local struct: `low` and `high`
 *   sum_list       a local array of structs: `count` and `weight`
 *   sum_argument   a struct that is passed by value: `pair.low` and `more`
 *   sum_through    a local struct by its address, in a function of its own: `low` and `high`
 *   sum_thread     a variable of the thread: `low`; an array of the thread: elements; a struct behind a
 *                  pointer of the thread: `value`
 *   sum_returned   what a function returned points to: `value`; the function loads an element of `nodes`
 *   sum_numbers    a local number, which has no field
 *   sum_moved      a local array by an index that counts from before it: not to be told
 */
#include <stdlib.h>

struct pair {
	long low, high;
};

/* Larger than what is passed in registers. */
struct large {
	struct pair pair;
	long more;
};

struct item {
	int count;
	short weight;
};

struct node {
	long pad, value;
};

struct node **nodes;

static __thread volatile struct pair own = {1, 2};
static __thread volatile int own_list[16];
static __thread struct node *volatile own_node;

volatile long result;

#define APART __attribute__((noinline))

APART long sum_local(long n)
{
	volatile struct pair local = {n, 1};
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += local.low - local.high;
	return sum;
}

APART long sum_list(long n)
{
	volatile struct item list[8] = {{1, 2}};
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += list[i % 8].count - list[i % 8].weight;
	return sum;
}

APART long sum_argument(long n, volatile struct large argument)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += argument.pair.low - argument.more;
	return sum;
}

APART long through(const volatile struct pair *pair, long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += pair->low - pair->high;
	return sum;
}

APART long sum_through(long n)
{
	volatile struct pair local = {n, 1};

	return through(&local, n);
}

APART long sum_thread(long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += own.low + own_list[i % 16] + own_node->value;
	return sum;
}

APART struct node *give(long i)
{
	return nodes[i];
}

APART long sum_returned(long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += give(i)->value;
	return sum;
}

APART long sum_numbers(long n)
{
	volatile long number = n;
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += number;
	return sum;
}

APART long sum_moved(long n)
{
	volatile int before[3] = {1}, list[8] = {1};
	long sum = before[1];

	for (long i = 0; i < n; i++)
		sum += list[i % 8 - 1 + (i % 8 == 0)];
	return sum;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000;

	nodes = calloc(n, sizeof(*nodes));
	for (long i = 0; i < n; i++)
		nodes[i] = calloc(1, sizeof(**nodes));
	own_node = nodes[0];
	result = sum_local(n) + sum_list(n) + sum_argument(n, (struct large){{1, 2}, 3}) + sum_through(n) +
		 sum_thread(n) + sum_returned(n) + sum_numbers(n) + sum_moved(n);
	return 0;
}
