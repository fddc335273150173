// SPDX-License-Identifier: GPL-2.0-only
#include "metric/expectation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"

static const char *const operators[] = {
	[LESS] = "<", [AT_MOST] = "<=", [MORE] = ">", [AT_LEAST] = ">=", [EQUAL] = "==",
};
#define OPERATORS ARRAY_SIZE(operators)

static int refuse_expectation(struct refusal *refusal, const char *text, const char *why)
{
	refuse(refusal, STATUS_USAGE, "option --expect '%.200s'", text);
	because(refusal, "%s", why);
	return instead(
		refusal,
		"write a metric, an event, or a share that analyze has, one of < <= > >= ==, and a number: "
		"'ipc>0.8', 'page-faults<=10k', 'task-clock<20ms', 'memory_bound<20%%'");
}

/* Suffixes of numbers. Those of counts are powers of 1000, as in SI and in what perf stat prints. */
static const struct suffix {
	const char *word;
	double factor;
	bool is_time, is_percent;
} suffixes[] = {
	{.word = "", 1},	   {.word = "k", 1e3},
	{.word = "K", 1e3},	   {.word = "M", 1e6},
	{.word = "G", 1e9},	   {.word = "ns", 1, true},
	{.word = "us", 1e3, true}, {.word = "ms", 1e6, true},
	{.word = "s", 1e9, true},  {.word = "%", 1, .is_percent = true},
};

/* Takes "1e4", "10k", "20 ms". Returns whether it is a number. */
static bool take_limit(struct expectation *expectation, const char *text)
{
	char *suffix, word[4];
	size_t length;

	expectation->limit = strtod(text, &suffix);
	if (suffix == text || !isfinite(expectation->limit))
		return false;
	suffix += strspn(suffix, " ");
	length = strcspn(suffix, " ");
	if (length >= sizeof(word) || suffix[length + strspn(suffix + length, " ")])
		return false;
	snprintf(word, sizeof(word), "%.*s", (int)length, suffix);
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		if (strcmp(word, suffixes[i].word))
			continue;
		expectation->limit *= suffixes[i].factor;
		expectation->is_time = suffixes[i].is_time;
		expectation->is_percent = suffixes[i].is_percent;
		return isfinite(expectation->limit);
	}
	return false;
}

/* Finds the last run of operator characters. Event names may contain such characters too
 * (cpu/event=0xc0/). */
static const char *find_operator(const char *text, size_t *length)
{
	const char *end = text + strlen(text), *begin;

	while (end > text && !strchr("<>=", end[-1]))
		end--;
	for (begin = end; begin > text && strchr("<>=", begin[-1]);)
		begin--;
	*length = end - begin;
	return begin;
}

static int parse_expectation(struct expectation *expectation, const char *text, struct refusal *refusal)
{
	size_t length, name, i = 0;
	const char *at = find_operator(text, &length);

	*expectation = (struct expectation){.text = text};
	if (!length)
		return refuse_expectation(refusal, text, "it compares nothing");
	while (i < OPERATORS && (strlen(operators[i]) != length || strncmp(operators[i], at, length)))
		i++;
	if (i == OPERATORS)
		return refuse_expectation(refusal, text, "there is no such comparison");
	expectation->comparison = i;
	if (!take_limit(expectation, at + length))
		return refuse_expectation(refusal, text, "behind the comparison there is no number");
	text += strspn(text, " ");
	for (name = at > text ? at - text : 0; name && text[name - 1] == ' ';)
		name--;
	if (!name || name >= sizeof(expectation->name))
		return refuse_expectation(refusal, expectation->text,
					  name ? "the name is too long" : "it names nothing");
	snprintf(expectation->name, sizeof(expectation->name), "%.*s", (int)name, text);
	return 0;
}

struct expectation *expectations_add(struct expectations *expectations, const char *text,
				     struct refusal *refusal)
{
	struct expectation *added;

	expectations->list = xrealloc(expectations->list, (expectations->nr + 1) * sizeof(*added));
	added = &expectations->list[expectations->nr];
	if (parse_expectation(added, text, refusal))
		return NULL;
	expectations->nr++;
	return added;
}

const char *expectation_operator(const struct expectation *expectation)
{
	return operators[expectation->comparison];
}

enum outcome expectation_outcome(const struct expectation *expectation, const struct bound *bound)
{
	double low = bound->low, high = bound->high, limit = expectation->limit;
	bool met = false, failed = false;

	switch (expectation->comparison) {
	case LESS:
		met = high < limit;
		failed = low >= limit;
		break;
	case AT_MOST:
		met = high <= limit;
		failed = low > limit;
		break;
	case MORE:
		met = low > limit;
		failed = high <= limit;
		break;
	case AT_LEAST:
		met = low >= limit;
		failed = high < limit;
		break;
	case EQUAL:
		met = low == limit && high == limit;
		failed = limit < low || limit > high;
		break;
	}
	return met ? MET : failed ? FAILED : CANNOT_TELL;
}
