/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts with what is known of their truth, as members of records. */
#ifndef NHMTAP_RECORD_BOUND_H
#define NHMTAP_RECORD_BOUND_H

#include <jansson.h>

#include "metric/bound.h"
#include "record/fields.h"

/* {level, low, high, readings}; a side that is not known is left out. A new reference. */
json_t *bound_value(const struct bound *bound);

/* Adds a count with its status and times, what it is scaled to, and the bound of that to a record. */
void add_count(struct fields *fields, const struct turns *turns, const struct count *counts, size_t event);

#endif
