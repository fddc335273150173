/* SPDX-License-Identifier: GPL-2.0-only */
/* The format for people. Each type of record has a function that prints it as a block of text; these
 * functions register themselves. */
#pragma once

#include <jansson.h>

#include "output/calls.h"
#include "output/member.h"
#include "output/output.h"
#include "output/text.h"

struct table {
	const char *type; /* type of the records */
	void (*add)(struct text *text, const struct stream *stream, const json_t *record);
	/* The section that the record is printed in; "": another table prints the record. NULL: the section
	 * is the record's member `section`. */
	const char *(*section)(const struct stream *stream, const json_t *record);
};

#define REGISTER_TABLE_IN(record_type, function, section_function)                                           \
	static const struct table table_of_##record_type = {#record_type, function, section_function};       \
	static const struct table *const registered_table_of_##record_type                                   \
		__attribute__((section("tables"), used)) = &table_of_##record_type
#define REGISTER_TABLE(record_type, function) REGISTER_TABLE_IN(record_type, function, NULL)
