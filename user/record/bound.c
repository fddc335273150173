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
	if (bound->capped)
		json_object_set_new_nocheck(value, "capped", json_true());
	if (!exact)
		json_object_set_new_nocheck(value, "readings", json_integer(bound->turns));
	if (bound->absent_ns)
		json_object_set_new_nocheck(value, "absent_ns", json_integer(llround(bound->absent_ns)));
	return value;
}

void add_count(struct fields *fields, const struct turns *turns, const struct count *counts, size_t event)
{
	const struct count *count = &counts[event];
	const char *status = count_status(count);
	struct bound bound;

	fields_text(fields, "status", status, strlen(status));
	fields_number(fields, "value", count->value);
	fields_number(fields, "enabled_ns", count->enabled_ns);
	fields_number(fields, "running_ns", count->running_ns);
	if (!count->running_ns)
		return;
	if (!count_is_estimate(count)) {
		fields_number(fields, "scaled", count->value);
		return;
	}
	bound_of_count(turns, counts, event, &bound);
	fields_number(fields, "scaled", llround(count_scaled(count)));
	fields_value(fields, "bound", bound_value(&bound));
}
