/* SPDX-License-Identifier: GPL-2.0-only */
/* Places that samples were taken at: code, or data. Equal ones are summed up. */
#pragma once

#include <jansson.h>
#include <linux/types.h>

#include "host/host.h"

struct spots {
	json_t *sums; /* by the place's text */
	double all;   /* what the samples of all of them stand for */
};

void spots_begin(struct spots *spots);

/* Adds what the samples at a place stand for. Takes the reference to the place, which has the members that
 * tell it from others. */
void spots_add(struct spots *spots, json_t *place, double weight);

/* Returns the largest, each with its `share` of all; NULL if there is none. Releases the others. */
json_t *spots_end(struct spots *spots, size_t most);

/* A period that gives about so many samples of what occurs so often, but not below the least that the kernel
 * takes. It is a prime, so that the samples keep step with no loop, unless it is the least. */
__u64 period_for(const struct host *host, double occurrences, double wanted);
