// SPDX-License-Identifier: GPL-2.0-only
#include "base/alternatives.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"

void alternatives_begin(struct alternatives *alternatives, const char *wanted, size_t length)
{
	snprintf(alternatives->wanted, sizeof(alternatives->wanted), "%.*s", (int)length, wanted);
	nearest_begin(&alternatives->nearest, alternatives->wanted, 3);
	alternatives->all[0] = '\0';
}

void alternatives_offer(struct alternatives *alternatives, const char *word)
{
	nearest_offer(&alternatives->nearest, word);
	list_append(alternatives->all, sizeof(alternatives->all), word);
}

void alternatives_offer_all(struct alternatives *alternatives, const char *const *words)
{
	for (; *words; words++)
		alternatives_offer(alternatives, *words);
}

/* Whether it is so near that it is worth naming though all words follow: up to a third of the letters differ,
 * or one of two. */
static bool is_near(const struct alternatives *alternatives, int i)
{
	int length = strlen(alternatives->wanted), most = length / 3 ?: length / 2,
	    distance = alternatives->nearest.best[i].distance;

	/* The word itself is refused for what comes with it. */
	return alternatives->nearest.best[i].name && distance && distance <= most;
}

bool alternatives_near(const struct alternatives *alternatives)
{
	return is_near(alternatives, 0);
}

int alternatives_end(const struct alternatives *alternatives, struct refusal *refusal, const char *next, ...)
{
	char near[100] = "", rest[sizeof(alternatives->all) + 60];
	va_list values;

	for (int i = 0; i < alternatives->nearest.most && is_near(alternatives, i); i++)
		list_append(near, sizeof(near), alternatives->nearest.best[i].name);
	va_start(values, next);
	vsnprintf(rest, sizeof(rest), next, values);
	va_end(values);
	return instead(refusal, "%s%s%s%s", *near ? "did you mean " : "", near, *near ? "? " : "", rest);
}
