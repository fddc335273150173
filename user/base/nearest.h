/* SPDX-License-Identifier: GPL-2.0-only */
/* What may have been meant by a name that there is not. */
#pragma once

#include <stddef.h>

/* The names closest to an unknown one. Start with nearest_begin(), offer candidates, then print. */
#define NEAREST_MOST 8
struct nearest {
	const char *wanted;
	int most; /* the number of names to keep, at most NEAREST_MOST */
	struct {
		const char *name; /* the candidate's string, borrowed; NULL: none yet */
		int distance;
	} best[NEAREST_MOST];
};

void nearest_begin(struct nearest *nearest, const char *wanted, int most);
void nearest_offer(struct nearest *nearest, const char *candidate);
/* Writes the names, closest first, separated by ", ". Returns their number. */
int nearest_print(const struct nearest *nearest, char *text, size_t size);
