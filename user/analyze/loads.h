/* SPDX-License-Identifier: GPL-2.0-only */
/* Loads that were sampled with their latency: what a load costs by where its data was, and which data it was.
 */
#pragma once

#include <jansson.h>

#include "activity/activity.h"
#include "analyze/account.h"

/* Samples loads that the first level did not serve, of which about so many occur. Returns the records, a new
 * reference, or NULL: they can't be sampled here. */
json_t *loads_sample(struct activity *activity, double occurrences, double wanted);

/* Computes what a load costs more than one from the first level, by the samples from these sources, a list
 * separated by ','. Returns false if there are too few of them. */
bool loads_cost(const json_t *records, const char *sources, struct cost_range *cost);

/* The pages that most of these loads were from, the largest part first: a new reference; NULL: none. */
json_t *loads_pages(const json_t *records, const char *sources);

/* The variables, or types and their fields, or mappings, that most of them were from: the same. */
json_t *loads_objects(const json_t *records, const char *sources);
