/* SPDX-License-Identifier: GPL-2.0-only */
/* What a record counts, as rows without anything nested: one for each of its entries, or for itself. */
#ifndef NHMTAP_FLATTEN_H
#define NHMTAP_FLATTEN_H

#include <stdbool.h>
#include <jansson.h>

struct calls;

struct row {
	json_t *keys;	     /* the key of its series: names with texts, numbers or booleans */
	json_t *values;	     /* what was measured beside value */
	const json_t *value; /* what sums up; NULL: there is none */
};

/*
 * Calls `take` for each row, which is gone afterwards; calls: the frames of its stacks, of which the
 * innermost function is the row's symbol; stacks: whether they become one text each, too, or are left out.
 * Returns 0, or what `take` returned first that was not.
 */
int flatten(const json_t *record, const struct calls *calls, bool stacks,
	    int (*take)(void *context, const struct row *row), void *context);

#endif
