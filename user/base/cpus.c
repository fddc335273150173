// SPDX-License-Identifier: GPL-2.0-only
#include "base/cpus.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define WORD_BITS (8 * sizeof(unsigned long))

static int take_number(const char **at)
{
	long value = 0;

	if (!isdigit((unsigned char)**at))
		return -1;
	for (; isdigit((unsigned char)**at); (*at)++) {
		value = value * 10 + (**at - '0');
		if (value >= CPUS_MAX)
			return -1;
	}
	return value;
}

int cpus_parse(const char *text, struct cpus *cpus)
{
	memset(cpus, 0, sizeof(*cpus));
	for (const char *at = text;; at++) {
		int first = take_number(&at), last = first;

		if (*at == '-') {
			at++;
			last = take_number(&at);
		}
		if (first < 0 || last < first)
			return -1;
		for (int cpu = first; cpu <= last; cpu++)
			cpus_add(cpus, cpu);
		if (*at == '\0' || *at == '\n')
			return 0;
		if (*at != ',')
			return -1;
	}
}

bool cpus_has(const struct cpus *cpus, int cpu)
{
	return cpu >= 0 && cpu < CPUS_MAX && (cpus->bits[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1);
}

void cpus_add(struct cpus *cpus, int cpu)
{
	cpus->bits[cpu / WORD_BITS] |= 1UL << (cpu % WORD_BITS);
}

void cpus_remove(struct cpus *cpus, int cpu)
{
	cpus->bits[cpu / WORD_BITS] &= ~(1UL << (cpu % WORD_BITS));
}

int cpus_count(const struct cpus *cpus)
{
	int count = 0;

	for (size_t i = 0; i < CPUS_MAX / WORD_BITS; i++)
		count += __builtin_popcountl(cpus->bits[i]);
	return count;
}

int cpus_end(const struct cpus *cpus)
{
	int end = 0;

	for (int cpu = cpus_next(cpus, 0); cpu >= 0; cpu = cpus_next(cpus, end))
		end = cpu + 1;
	return end;
}

int cpus_next(const struct cpus *cpus, int from)
{
	size_t word = from / WORD_BITS;
	unsigned long bits;

	if (from >= CPUS_MAX)
		return -1;
	bits = cpus->bits[word] & ~0UL << from % WORD_BITS;
	while (!bits && ++word < CPUS_MAX / WORD_BITS)
		bits = cpus->bits[word];
	return bits ? (int)(word * WORD_BITS) + __builtin_ctzl(bits) : -1;
}

int cpus_missing(const struct cpus *a, const struct cpus *b)
{
	for (int cpu = cpus_next(a, 0); cpu >= 0; cpu = cpus_next(a, cpu + 1))
		if (!cpus_has(b, cpu))
			return cpu;
	return -1;
}

char *cpus_print(const struct cpus *cpus, char *buffer, size_t size)
{
	size_t used = 0;

	buffer[0] = '\0';
	for (int first = cpus_next(cpus, 0); first >= 0;) {
		int last = first;

		while (cpus_has(cpus, last + 1))
			last++;
		used += snprintf(buffer + used, size - used, first == last ? "%s%d" : "%s%d-%d",
				 used ? "," : "", first, last);
		if (used >= size)
			break;
		first = cpus_next(cpus, last + 1);
	}
	return buffer;
}
