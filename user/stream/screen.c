// SPDX-License-Identifier: GPL-2.0-only
/* The tables of a stream of samples: a line each, and the account at the end. */
#include <string.h>

#include "base/array.h"
#include "output/remarks.h"
#include "output/rows.h"
#include "output/table.h"

/* Members that are not shown, or not as one of the columns at the end. */
static const char *const apart[] = {"type",	"schema_version", "time",   "run_id",	   "seq",
				    "activity", "event",	  "nth",    "sample_time", "source",
				    "address",	"latency",	  "period", "registers",   "stack",
				    "branches", "truncated"};

static bool is_apart(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(apart); i++)
		if (!strcmp(apart[i], name))
			return true;
	return false;
}

static void add_cell(struct text *text, const char *before, const json_t *value)
{
	char content[256];

	row_cell(value, content, sizeof(content));
	text_add(text, "%s%s", before, content);
}

/* "touch (pages) < main (pages)" */
static void add_stack(struct text *text, const json_t *stack)
{
	const json_t *frame;
	size_t i;

	json_array_foreach(stack, i, frame)
		add_cell(text, i ? " < " : " ", frame);
}

/* "main (loop) > a (loop), a (loop) > b (loop) mispredicted" */
static void add_branches(struct text *text, const json_t *branches)
{
	const json_t *branch;
	size_t i;

	json_array_foreach(branches, i, branch) {
		add_cell(text, i ? ", " : " ", json_object_get(branch, "from"));
		add_cell(text, " > ", json_object_get(branch, "to"));
		if (json_is_true(json_object_get(branch, "mispredicted")))
			text_add(text, " mispredicted");
	}
}

static void add_registers(struct text *text, const json_t *registers)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)registers, name, value)
		text_add(text, " %s=%s", name, json_string_value(value));
}

static const struct {
	const char *name;
	void (*add)(struct text *text, const json_t *value);
} long_members[] = {
	{"registers", add_registers},
	{"stack", add_stack},
	{"branches", add_branches},
};

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
	for (size_t i = 0; i < ARRAY_SIZE(long_members); i++)
		long_members[i].add(text, json_object_get(record, long_members[i].name));
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
	text_add(text, "%s: %s in %.3f s\n", string(record, "event"),
		 row_counted(integer(json_object_get(record, "samples"), "aggregated"), "sample", number,
			     sizeof(number)),
		 integer(record, "duration_ns") / 1e9);
	lines_of_status(text, record);
	text_add(text, "\n");
}

REGISTER_TABLE(sample, sample_table);
REGISTER_TABLE(lost, lost_table);
REGISTER_TABLE(stream, stream_table);
