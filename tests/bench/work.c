// SPDX-License-Identifier: GPL-2.0-only
// usage: work int|memory|float|sort TURNS
//
// Four kinds of work for comparing the speeds of emulators. It is linked statically and depends on nothing
// but its arguments, so that it executes the same instructions everywhere.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

// Integers in registers, and branches that depend on them.
static uint64_t whole(void)
{
	uint64_t sum = 0;
	for (int i = 0; i < 1000; i++) {
		uint64_t r = next_random();
		sum += r & 1 ? r >> 3 : r ^ sum;
	}
	return sum;
}

// Reads and writes all over 4 MiB, which no first or second level of caches holds.
static uint64_t memory(void)
{
	static uint64_t place[1 << 19];
	uint64_t sum = 0;
	for (int i = 0; i < 1000; i++) {
		uint64_t *at = &place[next_random() % (1 << 19)];
		sum += *at;
		*at = sum;
	}
	return sum;
}

// The product of two small matrices, with doubles.
static uint64_t floating(void)
{
	enum { N = 16 };
	static double a[N][N], b[N][N], c[N][N];
	a[random_state % N][1] = 1.5;
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++)
			for (int j = 0; j < N; j++)
				c[i][j] += a[i][k] * b[k][j];
	return (uint64_t)c[1][1];
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static uint64_t sorting(void)
{
	static uint64_t number[1000];
	for (int i = 0; i < 1000; i++)
		number[i] = next_random();
	qsort(number, 1000, sizeof *number, compare);
	return number[500];
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint64_t (*turn)(void);
	} kinds[] = {{"int", whole}, {"memory", memory}, {"float", floating}, {"sort", sorting}};
	volatile uint64_t result = 0;
	for (size_t k = 0; argc == 3 && k < sizeof kinds / sizeof *kinds; k++)
		if (!strcmp(argv[1], kinds[k].name)) {
			for (long turns = atol(argv[2]); turns; turns--)
				result += kinds[k].turn();
			return 0;
		}
	return 2;
}
