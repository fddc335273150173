// SPDX-License-Identifier: GPL-2.0-only
#include "record/bound.h"

#include <math.h>

#include "record/record.h"

json_t *bound_value(const struct bound *bound)
{
	bool exact = bound->low == bound->high;
	json_t *value = json_pack("{s:o}", "level", exact ? json_integer(1) : json_real(BOUND_LEVEL));

	json_object_set_new_nocheck(value, "low", value_real(bound->low));
	json_object_set_new_nocheck(value, "high", value_real(bound->high));
	if (!exact)
		json_object_set_new_nocheck(value, "readings", json_integer(bound->turns));
	return value;
}

static const char *count_status(const struct count *count)
{
	if (!count->running_ns)
		return "not_counted";
	return count_is_estimate(count) ? "multiplexed" : "counted";
}

void put_count(json_t *record, const struct turns *turns, const struct count *counts, size_t event)
{
	const struct count *count = &counts[event];
	struct bound bound;

	json_object_set_new_nocheck(record, "status", json_string(count_status(count)));
	json_object_set_new_nocheck(record, "value", json_integer(count->value));
	json_object_set_new_nocheck(record, "enabled_ns", json_integer(count->enabled_ns));
	json_object_set_new_nocheck(record, "running_ns", json_integer(count->running_ns));
	if (!count->running_ns)
		return;
	if (!count_is_estimate(count)) {
		json_object_set_new_nocheck(record, "scaled", json_integer(count->value));
		return;
	}
	bound_of_count(turns, counts, event, &bound);
	json_object_set_new_nocheck(record, "scaled", json_integer(llround(count_scaled(count))));
	json_object_set_new_nocheck(record, "bound", bound_value(&bound));
}
