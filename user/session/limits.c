// SPDX-License-Identifier: GPL-2.0-only
#include "session/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_LEAST (1UL << 20)

/* Weights for sharing what is left after each part has its least size. If a part wants less than its
 * proportion, the others get the rest. */
static const struct {
	const char *name;
	unsigned int weight;
} parts[MEMORY_PARTS] = {
	[MEMORY_PROGRAM] = {"program", 0},     [MEMORY_TABLES] = {"tables", 0},
	[MEMORY_UNWINDING] = {"unwinding", 2}, [MEMORY_NAMES] = {"names", 3},
	[MEMORY_QUEUES] = {"queues", 1},       [MEMORY_ENTRIES] = {"entries", 4},
};

size_t limits_size(const char *text)
{
	static const char units[] = "KMG";
	const char *unit;
	unsigned long long number;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return 0;
	number = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (*end && (!unit || end[1]))
		return 0;
	for (const char *at = units; unit && at <= unit; at++)
		number = number >> 53 ? 0 : number * 1024;
	return number >= MEMORY_LEAST && !(number >> 53) ? number : 0;
}

void limits_want(struct limits *limits, enum memory_part part, size_t least, size_t most)
{
	limits->parts[part].least += least;
	limits->parts[part].most += most;
}

static size_t taken_memory(const struct limits *limits, enum memory_part part)
{
	const struct memory_want *want = &limits->parts[part];

	if (limits->shared)
		return want->share > want->least || want->spare ? want->share : want->least;
	return want->spare ? 0 : want->least;
}

int limits_check(const struct limits *limits, struct refusal *refusal)
{
	char sum[400] = "";
	size_t all = 0, length = 0;

	for (size_t i = 0; i < MEMORY_PARTS; i++) {
		size_t one = taken_memory(limits, i);

		all += one;
		if (one && length < sizeof(sum))
			length += snprintf(sum + length, sizeof(sum) - length, "%s%s %.1f",
					   length ? ", " : "", parts[i].name, one / 1048576.0);
	}
	if (!limits->memory || all <= limits->memory)
		return 0;
	refuse(refusal, STATUS_REFUSED, "option --memory, %.1f MiB", limits->memory / 1048576.0);
	because(refusal, "at least %.1f MiB are needed: %s", all / 1048576.0, sum);
	return instead(refusal, "allow more, or sample fewer events, without stacks or with --unwind fp");
}

/* How much larger a part could be; 0 if it was left out. */
static size_t room_of(const struct memory_want *want)
{
	bool out = want->spare && !want->share;

	return !out && want->most > want->share ? want->most - want->share : 0;
}

static size_t give_least(struct limits *limits)
{
	size_t left = limits->memory;

	for (size_t i = 0; i < MEMORY_PARTS; i++)
		if (!limits->parts[i].spare)
			left -= limits->parts[i].share = limits->parts[i].least;
	for (size_t i = 0; i < MEMORY_PARTS; i++) {
		struct memory_want *want = &limits->parts[i];

		if (want->spare && left >= want->least + want->spare)
			left -= want->share = want->least;
	}
	return left;
}

void limits_share(struct limits *limits)
{
	size_t left = give_least(limits);

	/* In each round, at least one part gets all that it wants, or nearly everything is given away. */
	for (size_t round = 0; round < MEMORY_PARTS; round++) {
		size_t given = 0, weights = 0;

		for (size_t i = 0; i < MEMORY_PARTS; i++)
			weights += room_of(&limits->parts[i]) ? parts[i].weight : 0;
		for (size_t i = 0; weights && i < MEMORY_PARTS; i++) {
			struct memory_want *want = &limits->parts[i];
			size_t room = room_of(want);
			size_t one = left / weights * parts[i].weight;

			one = one < room ? one : room;
			want->share += one;
			given += one;
		}
		left -= given;
	}
	limits->shared = true;
}

json_t *limits_value(const struct limits *limits)
{
	json_t *shares = json_object(), *smaller = json_object(), *value;

	for (size_t i = 0; i < MEMORY_PARTS; i++) {
		const struct memory_want *want = &limits->parts[i];

		if (!want->most)
			continue;
		json_object_set_new(shares, parts[i].name, json_integer(want->share));
		if (want->share < want->most)
			json_object_set_new(smaller, parts[i].name, json_integer(want->most));
	}
	value = json_pack("{s:I, s:o}", "memory", (json_int_t)limits->memory, "parts", shares);
	json_object_set_new(value, "made_smaller_from", smaller);
	return value;
}
