// SPDX-License-Identifier: GPL-2.0-only
#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_COMPARED 64
#define SHORT_FORM_LEAST  4 /* letters; fewer begin many words */

/* The number of edits (insertion, deletion, replacement, swap of neighbours) from a to b, ignoring case. */
static int edits(const char *a, const char *b)
{
	int rows[3][NAME_MAX_COMPARED + 1];
	int m = strnlen(a, NAME_MAX_COMPARED), n = strnlen(b, NAME_MAX_COMPARED);
	int *before = rows[0], *last = rows[1], *now = rows[2];

	for (int j = 0; j <= n; j++)
		last[j] = j;
	for (int i = 1; i <= m; i++) {
		now[0] = i;
		for (int j = 1; j <= n; j++) {
			int x = toupper((unsigned char)a[i - 1]), y = toupper((unsigned char)b[j - 1]);
			int best = last[j - 1] + (x != y);

			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && x == toupper((unsigned char)b[j - 2]) &&
			    y == toupper((unsigned char)a[i - 2]) && before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
		int *spare = before;

		before = last;
		last = now;
		now = spare;
	}
	return last[n];
}

void nearest_begin(struct nearest *nearest, const char *wanted, int most)
{
	*nearest = (struct nearest){wanted, most < NEAREST_MOST ? most : NEAREST_MOST, {{0}}};
}

void nearest_offer(struct nearest *nearest, const char *candidate)
{
	/* If up to a third of the letters differ (rounded up), it is a typo; if more, another word. Names
	 * that begin with the wanted one are also offered: "INST_RETIRED". So are, after typos, those with
	 * which the wanted one begins: "freq" for "frequency". */
	int length = strlen(nearest->wanted), other = strlen(candidate), most = (length + 2) / 3,
	    distance = 1;
	bool shorter = other >= SHORT_FORM_LEAST && other < length &&
		       !strncasecmp(nearest->wanted, candidate, other);

	if (shorter) {
		distance = length - other < most ? length - other : most;
	} else if (!length || strncasecmp(nearest->wanted, candidate, length)) {
		/* Each edit changes the length by at most one, so most candidates need no comparison. */
		if (abs(other - length) > most)
			return;
		distance = edits(nearest->wanted, candidate);
	}
	if (distance > most)
		return;
	for (int i = 0; i < nearest->most; i++) {
		if (nearest->best[i].name && nearest->best[i].distance <= distance)
			continue;
		memmove(&nearest->best[i + 1], &nearest->best[i],
			(nearest->most - 1 - i) * sizeof(nearest->best[0]));
		nearest->best[i].name = candidate;
		nearest->best[i].distance = distance;
		return;
	}
}

int nearest_print(const struct nearest *nearest, char *text, size_t size)
{
	size_t used = 0;
	int i = 0;

	text[0] = '\0';
	for (; i < nearest->most && nearest->best[i].name && used < size; i++)
		used += snprintf(text + used, size - used, "%s%s", i ? ", " : "", nearest->best[i].name);
	return i;
}
