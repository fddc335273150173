// SPDX-License-Identifier: GPL-2.0-only
/* What is measured: a binary search. Searched one after the other, 1000 numbers take some 10,000 steps; a search that
 * looked at each of them would take 500,000. */
#include <stdio.h>

enum { NUMBERS = 1000 };

static int numbers[NUMBERS];

static int find(int wanted)
{
	int low = 0, high = NUMBERS - 1;

	while (low < high) {
		int middle = (low + high) / 2;

		if (numbers[middle] < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int main(void)
{
	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = 3 * i;
	for (int i = 0; i < NUMBERS; i++)
		if (find(3 * i) != i)
			return fprintf(stderr, "search: %d is not found\n", 3 * i), 1;
	return 0;
}
