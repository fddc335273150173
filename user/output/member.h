/* SPDX-License-Identifier: GPL-2.0-only */
/* Members of a record, as what reads records wants them. */
#ifndef NHMTAP_MEMBER_H
#define NHMTAP_MEMBER_H

#include <jansson.h>

/* A member's text, "" if it has none. */
static inline const char *string(const json_t *record, const char *name)
{
	const char *value = json_string_value(json_object_get(record, name));

	return value ? value : "";
}

/* A member's whole number, 0 if it has none. */
static inline json_int_t integer(const json_t *record, const char *name)
{
	return json_integer_value(json_object_get(record, name));
}

#endif
