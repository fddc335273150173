// SPDX-License-Identifier: GPL-2.0-only
#include "record/fields.h"

void fields_put(const struct fields *fields, json_t *record)
{
	for (size_t i = 0; i < fields->nr; i++) {
		const struct field *field = &fields->list[i];
		json_t *value = field->text    ? json_stringn_nocheck(field->text, field->length)
				: field->value ? json_incref(field->value)
					       : json_integer(field->number);

		json_object_set_new_nocheck(record, field->name, value);
	}
}

void fields_clear(struct fields *fields)
{
	for (size_t i = 0; i < fields->nr; i++)
		json_decref(fields->list[i].value);
	fields->nr = 0;
}
