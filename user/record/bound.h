/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts with what is known of their truth, as members of records. */
#ifndef NHMTAP_RECORD_BOUND_H
#define NHMTAP_RECORD_BOUND_H

#include <jansson.h>

#include "metric/bound.h"

/* {level, low, high, readings}; a side that is not known is left out. A new reference. */
json_t *bound_value(const struct bound *bound);

/* Puts a count with its status and times, what it is scaled to, and the bound of that into a record. */
void put_count(json_t *record, const struct turns *turns, const struct count *counts, size_t event);

#endif
