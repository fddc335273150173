// SPDX-License-Identifier: GPL-2.0-only
/* The tables of a stream of samples: a line each, and the account at the end. */
#include <string.h>

#include "base/array.h"
#include "output/remarks.h"
#include "output/rows.h"
#include "output/table.h"

/* Members that are not shown, or not as one of the columns at the end. */
static const char *const apart[] = {"type",	"schema_version", "time",  "run_id",	  "seq",
				    "activity", "event",	  "nth",   "sample_time", "source",
				    "address",	"latency",	  "period"};

static bool is_apart(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(apart); i++)
		if (!strcmp(apart[i], name))
			return true;
	return false;
}

static void sample_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const char *name;
	char content[256];
	json_t *value;

	text_add(text, "%.15s  %s", string(record, "sample_time") + 11, string(record, "event"));
	if (json_object_get(record, "address"))
		text_add(text, "  %18s", string(record, "address"));
	if (json_object_get(record, "latency"))
		text_add(text, " %6lld", (long long)integer(record, "latency"));
	if (json_object_get(record, "source"))
		text_add(text, "  %-22s", string(record, "source"));
	json_object_foreach((json_t *)record, name, value)
		if (!is_apart(name)) {
			row_cell(value, content, sizeof(content));
			text_add(text, " %s", content);
		}
	row_end(text);
}

static void lost_table(struct text *text, const struct stream *stream, const json_t *record)
{
	text_add(text, "%.15s  %s  ", string(record, "until") + 11, string(record, "event"));
	if (json_object_get(record, "missing"))
		text_add(text, "%lld samples are missing here: they came faster than they were read\n",
			 (long long)integer(record, "missing"));
	else
		text_add(text,
			 "branches of thread %lld are missing here: they came faster than they were read\n",
			 (long long)integer(record, "tid"));
}

static void stream_table(struct text *text, const struct stream *stream, const json_t *record)
{
	char number[40];

	row_time(text, stream, record);
	text_add(text, "%s: %s samples in %.3f s\n", string(record, "event"),
		 row_grouped(integer(json_object_get(record, "samples"), "aggregated"), number,
			     sizeof(number)),
		 integer(record, "duration_ns") / 1e9);
	lines_of_status(text, record);
	text_add(text, "\n");
}

REGISTER_TABLE(sample, sample_table);
REGISTER_TABLE(lost, lost_table);
REGISTER_TABLE(stream, stream_table);
