// SPDX-License-Identifier: GPL-2.0-only
#include "activity/plausible.h"

#include <stdio.h>

/*
 * All limits leave room for what is rare but true:
 *
 * - Per ns that a program ran. A processor that a hypervisor takes away most of the time still runs at a
 * hundredth of its rate, and one that waits for devices retires some instructions a microsecond.
 * - Two events are not read at the same moment, so what happens between both readings, at most 10 ms, may be
 * in one count alone.
 * - An instruction that empties the caches, or a device, takes some 10,000 cycles; no stretch has only such
 * ones.
 */
#define CYCLES_LEAST	   0.005
#define CYCLES_MOST	   10.0
#define INSTRUCTIONS_LEAST 0.00005
#define INSTRUCTIONS_MOST  60.0
#define PER_CYCLE_LEAST	   0.00001
#define PER_CYCLE_MOST	   8.0
#define BETWEEN_READINGS   40000000ULL
#define CYCLES_ENOUGH	   20000000ULL
#define DIFFERENCE_PERCENT 5

/* Counts of other stretches differ by what happened there. Counters of one group are switched on and off
 * within microseconds. */
#define STRETCH_PERCENT 1

static bool is_long(const struct count *count)
{
	return count->running_ns >= PLAUSIBLE_NS;
}

/* Whether both were counted for all of the same stretch. Two estimates may be of other parts of it. */
static bool are_of_one_stretch(const struct count *one, const struct count *other)
{
	__u64 a = one->running_ns, b = other->running_ns, most = a > b ? a : b, least = a > b ? b : a;

	return !count_is_estimate(one) && !count_is_estimate(other) &&
	       most - least <= most / 100 * STRETCH_PERCENT;
}

bool implausible(const struct suspect *one, char *why, size_t size)
{
	const struct count *count = &one->count;
	bool cycles = one->kind == COUNTS_CYCLES;
	double rate = (double)count->value / (count->running_ns + 1.0);

	if (one->kind == COUNTS_OTHERS || !is_long(count))
		return false;
	if (rate > (cycles ? CYCLES_MOST : INSTRUCTIONS_MOST))
		return snprintf(why, size, "it counted %llu in %.0f ms, faster than any processor",
				count->value, count->running_ns / 1e6);
	if (!one->busy || rate >= (cycles ? CYCLES_LEAST : INSTRUCTIONS_LEAST))
		return false;
	return snprintf(why, size, "it counted only %llu in the %.0f ms that the target ran", count->value,
			count->running_ns / 1e6);
}

static bool too_many(const struct suspect *instructions, const struct suspect *cycles, char *why, size_t size)
{
	if (instructions->count.value <= PER_CYCLE_MOST * cycles->count.value + BETWEEN_READINGS)
		return false;
	return snprintf(why, size, "it counted %llu, and %s %llu: more than any core retires in a cycle",
			instructions->count.value, cycles->name, cycles->count.value);
}

static bool too_few(const struct suspect *instructions, const struct suspect *cycles, char *why, size_t size)
{
	if (cycles->count.value < CYCLES_ENOUGH + BETWEEN_READINGS ||
	    instructions->count.value >= PER_CYCLE_LEAST * cycles->count.value)
		return false;
	return snprintf(why, size, "it counted %llu, and %s %llu: so many cycles can't retire so few",
			instructions->count.value, cycles->name, cycles->count.value);
}

static bool counts_differ(const struct suspect *one, const struct suspect *other, char *why, size_t size)
{
	__u64 a = one->count.value, b = other->count.value, most = a > b ? a : b, least = a > b ? b : a;

	if (most - least <= BETWEEN_READINGS + most / 100 * DIFFERENCE_PERCENT)
		return false;
	return snprintf(why, size, "it counted %llu, and %s, which counts the same, %llu", a, other->name, b);
}

bool implausible_pair(const struct suspect *one, const struct suspect *other, char *why, size_t size)
{
	if (one->kind == COUNTS_OTHERS || other->kind == COUNTS_OTHERS || one->sides != other->sides ||
	    !is_long(&one->count) || !is_long(&other->count) ||
	    !are_of_one_stretch(&one->count, &other->count))
		return false;
	if (one->kind == other->kind)
		return counts_differ(one, other, why, size);
	if (one->kind == COUNTS_CYCLES)
		return false;
	return too_many(one, other, why, size) || too_few(one, other, why, size);
}
