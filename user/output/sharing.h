/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether cores take lines away from each other, by the loads that found theirs modified by another core. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

/* Starts as {0}. */
struct sharing {
	double loads, modified; /* what samples stand for */
	json_int_t samples;	/* that found a modified line */
	bool told;		/* the records say which lines */
};

/* Takes in a record of any type. */
void sharing_take(struct sharing *sharing, const json_t *record);

/* The share of the loads, if it is large enough to be looked into and the records don't say which lines; else
 * 0. */
double sharing_untold(const struct sharing *sharing);
