/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts with the bounds of their error, as members of records. */
#pragma once

#include <jansson.h>

#include "metric/bound.h"
#include "record/fields.h"

/* {level, low, high, readings, absent_ns}; a limit that is not known is left out. Returns a new reference. */
json_t *bound_value(const struct bound *bound);

/* Adds the count of one event to a record: status, times, the count scaled to the whole time, and the bound
 * of that. */
void add_count(struct fields *fields, const struct turns *turns, const struct count *counts, size_t event);
