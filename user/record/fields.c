// SPDX-License-Identifier: GPL-2.0-only
#include "record/fields.h"

#include <stdio.h>

#include "base/clock.h"
#include "record/record.h"

void fields_shape(struct fields *fields)
{
	static __u64 shapes; /* no two are the same in a process, whatever is closed or opened */

	if (fields->shape && fields->nr == fields->had)
		return;
	fields->had = fields->nr;
	fields->shape = __atomic_add_fetch(&shapes, 1, __ATOMIC_RELAXED);
}

void fields_rename(struct fields *fields, size_t at, const char *name, size_t length)
{
	fields->list[at].name = name;
	fields->list[at].name_length = length;
	fields->had = fields->nr;
	fields->shape = 0;
}

static json_t *histogram_value(const struct field *field)
{
	json_t *value = json_object();
	char bound[24];

	for (size_t i = 0; i < field->length; i++) {
		if (!field->buckets[i])
			continue;
		snprintf(bound, sizeof(bound), "%llu", 1ULL << i);
		json_object_set_new(value, bound, json_integer(field->buckets[i]));
	}
	return value;
}

static json_t *time_value(__u64 ns)
{
	struct timespec at = timespec_of(ns);

	return value_time(&at);
}

json_t *field_json(const struct field *field)
{
	switch (field->kind) {
	case FIELD_NUMBER:
		return json_integer(field->number);
	case FIELD_HEX:
		return value_hex(field->number);
	case FIELD_TIME:
		return time_value(field->number);
	case FIELD_TEXT:
		return value_text(field->text, field->length);
	case FIELD_RAW:
		return json_loadb(field->text, field->length, JSON_DECODE_ANY, NULL);
	case FIELD_HISTOGRAM:
		return histogram_value(field);
	default:
		return json_incref(field->value);
	}
}

void fields_put(const struct fields *fields, json_t *record)
{
	for (size_t i = 0; i < fields->nr; i++)
		json_object_set_new_nocheck(record, fields->list[i].name, field_json(&fields->list[i]));
}

void fields_clear(struct fields *fields)
{
	for (size_t i = 0; i < fields->nr && fields->owns; i++)
		if (fields->list[i].kind == FIELD_VALUE && !fields->list[i].borrowed)
			json_decref(fields->list[i].value);
	fields->nr = 0;
	fields->owns = false;
}
