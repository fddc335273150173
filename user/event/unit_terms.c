// SPDX-License-Identifier: GPL-2.0-only
#include "event/unit_terms.h"

int unit_refuse_term(const struct event *event, const char *term, size_t length, struct refusal *refusal)
{
	return refuse(refusal, STATUS_USAGE, "event '%s', term '%.*s'", event->name, (int)length, term);
}

/* Keeps the fields in the order of bits. */
void unit_add_field(struct register_value *reg, const char *name, const char *meaning, int low, int high)
{
	size_t at = reg->nr_fields++;

	for (; at && reg->fields[at - 1].low > low; at--)
		reg->fields[at] = reg->fields[at - 1];
	reg->fields[at] = (struct register_field){
		.name = name,
		.meaning = meaning,
		.low = low,
		.high = high,
		.value = reg->value >> low & ~0ULL >> (63 - (high - low)),
	};
}

const char *unit_meaning(const struct unit_field *field, __u64 value)
{
	for (size_t i = 0; i < field->nr_values; i++)
		if (field->values[i].value == value)
			return field->values[i].name;
	return value ? field->description : "off";
}
