// SPDX-License-Identifier: GPL-2.0-only
/* The table of a profile: its entries, with or without stacks. */
#include "output/remarks.h"
#include "output/rows.h"
#include "output/table.h"

static void profile_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *samples = json_object_get(record, "samples");
	const json_t *entries = json_object_get(record, "entries");
	const json_t *rest = json_object_get(record, "rest");
	struct whole whole = whole_of(entries, rest);
	char number[40], event[512];

	row_time(text, stream, record);
	row_cell(json_object_get(record, "event"), event, sizeof(event));
	text_add(text, "%s: %s in %.3f s\n", event,
		 row_counted(integer(samples, "aggregated"), "sample", number, sizeof(number)),
		 integer(record, "duration_ns") / 1e9);
	lines_of_status(text, record);
	if (json_object_get(record, "stacks"))
		rows_of_stacks(text, &stream->calls, entries, &whole);
	else if (json_array_size(entries) && !json_object_get(stream->start, "annotate"))
		rows_of_entries(text, entries, &whole);
	if (!json_object_get(stream->start, "annotate"))
		row_of_rest(text, rest, &whole);
	text_add(text, "\n");
}

REGISTER_TABLE(profile, profile_table);
