// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes what a process publishes about itself: any payload gives attributes that fit into a record, or
 * none. */
#include <stdlib.h>

#include "output/process_context.h"
#include "record/compact.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	json_t *attributes = process_context_parse(data, size), *value;
	const char *name;

	json_object_foreach(attributes, name, value)
		if (!*name || json_is_array(value) || json_is_object(value))
			abort();
	if (attributes && compact_bytes(attributes) > PROCESS_CONTEXT_MOST)
		abort();
	json_decref(attributes);
	return 0;
}
