// SPDX-License-Identifier: GPL-2.0-only
#include "record/type.h"

#include <string.h>

/* The linker defines these symbols: the section's name is a C identifier. */
extern const struct record_type *const __start_record_types[], *const __stop_record_types[];

const struct record_type *record_type_of(const json_t *record)
{
	const char *name = json_string_value(json_object_get(record, "type"));
	size_t nr = __stop_record_types - __start_record_types;

	for (size_t i = 0; name && i < nr; i++)
		if (!strcmp(__start_record_types[i]->name, name))
			return __start_record_types[i];
	return NULL;
}
