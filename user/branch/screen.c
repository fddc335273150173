// SPDX-License-Identifier: GPL-2.0-only
/* The table of branch: the hottest branches, with a bar for the share that was mispredicted. */
#include <math.h>
#include <string.h>

#include "output/remarks.h"
#include "output/rows.h"
#include "output/table.h"

#define BAR 10 /* length of a bar for 100 %, in characters */

static const char *place_text(const json_t *entry, const char *name, char *text, size_t size)
{
	const json_t *code = json_object_get(entry, name);

	text[0] = '\0';
	if (code)
		row_cell(code, text, size);
	return text;
}

static int width_of(const json_t *entries, const char *name)
{
	int width = strlen(name);
	char text[256];
	json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry) {
		int length = text_columns(place_text(entry, name, text, sizeof(text)));

		width = length > width ? length : width;
	}
	return width;
}

static void add_identity(struct text *text, const json_t *entry)
{
	char comm[64];

	if (json_object_get(entry, "pid"))
		text_add(text, "  %lld", (long long)integer(entry, "pid"));
	if (json_object_get(entry, "comm")) {
		row_cell(json_object_get(entry, "comm"), comm, sizeof(comm));
		text_add(text, "  %s", comm);
	}
	if (json_object_get(entry, "cgroup"))
		text_add(text, "  %s", string(entry, "cgroup"));
}

/* Adds how often the branch was mispredicted. Only edges have a prediction. */
static void add_prediction(struct text *text, const json_t *entry)
{
	bool weighed = json_object_get(entry, "mispredicted_period");
	double missed = row_share(integer(entry, weighed ? "mispredicted_period" : "mispredicted"),
				  calls_weight(entry));
	int length = lround(missed * BAR / 100);

	if (json_object_get(entry, "mispredicted"))
		text_add(text, "  %6.1f%% %.*s%*s", missed, length, "##########", BAR - length, "");
	else
		text_add(text, "  %*s", 8 + BAR, "");
}

static void add_rows(struct text *text, const struct calls *calls, const json_t *entries, json_int_t total)
{
	int from = width_of(entries, "from"), to = width_of(entries, "to");
	char number[40], a[256], b[256];
	json_t *entry;
	size_t i;

	text_add(text, "%12s %7s  %-*s  %-*s     %s\n", "count", "share", 8 + BAR, "mispredicted", from,
		 "from", "to");
	json_array_foreach(entries, i, entry) {
		json_int_t count = integer(entry, "count");
		bool range = !strcmp(string(entry, "kind"), "range");
		bool leads = json_object_get(entry, "to");

		text_add(text, "%12s %6.1f%%", row_grouped(count, number, sizeof(number)),
			 row_share(calls_weight(entry), total));
		add_prediction(text, entry);
		text_add(text, "  ");
		text_add_cell(text, place_text(entry, "from", a, sizeof(a)), from, false);
		text_add(text, "  %s ", !leads ? "  " : range ? ".." : "->");
		place_text(entry, "to", b, sizeof(b));
		if (json_object_get(entry, "pid") || json_object_get(entry, "comm") ||
		    json_object_get(entry, "cgroup"))
			text_add_cell(text, b, to, false);
		else
			text_add(text, "%s", b);
		add_identity(text, entry);
		text_add(text, "\n");
		row_stack(text, calls, entry);
	}
}

/* Adds, after the number of branches, what they came with, or how complete they are. */
static void add_origin(struct text *text, const json_t *record)
{
	const json_t *trace = json_object_get(record, "trace");
	json_int_t samples = integer(json_object_get(record, "samples"), "aggregated");
	char number[40];

	if (!trace)
		text_add(text, " with %s", row_counted(samples, "sample", number, sizeof(number)));
	else if (!strcmp(string(trace, "status"), "complete"))
		text_add(text, ", all that were taken,");
	else
		text_add(text, " (others are missing: a buffer was full)");
}

/* Writes a line of a stream: the thread, and the branch, with a mark if it was mispredicted. */
static void traced_table(struct text *text, const struct stream *stream, const json_t *record)
{
	char a[256], b[256];

	text_add(text, "%10lld %12lld  %s  %s -> %s\n", (long long)integer(record, "tid"),
		 (long long)integer(record, "number"),
		 json_is_true(json_object_get(record, "mispredicted")) ? "#" : " ",
		 place_text(record, "from", a, sizeof(a)), place_text(record, "to", b, sizeof(b)));
}

static void add_rest(struct text *text, const json_t *rest, json_int_t total, const char *what)
{
	char number[40], others[40];

	if (rest)
		text_add(text, "%12s %6.1f%%  in %s%s more\n",
			 row_grouped(integer(rest, "count"), number, sizeof(number)),
			 row_share(calls_weight(rest), total),
			 row_grouped(integer(rest, "entries"), others, sizeof(others)), what);
}

static void branch_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *branches = json_object_get(record, "branches");
	const json_t *entries = json_object_get(record, "entries");
	json_int_t delivered = integer(branches, "delivered");
	json_int_t total = json_object_get(branches, "period") ? integer(branches, "period") : delivered;
	char number[40], event[512];

	row_time(text, stream, record);
	row_cell(json_object_get(record, "event"), event, sizeof(event));
	text_add(text, "%s: %s", event, row_counted(delivered, "branch", number, sizeof(number)));
	add_origin(text, record);
	text_add(text, " in %.3f s\n", integer(record, "duration_ns") / 1e9);
	lines_of_status(text, record);
	if (json_array_size(entries))
		add_rows(text, &stream->calls, entries, total);
	add_rest(text, json_object_get(record, "rest"), total, "");
	add_rest(text, json_object_get(record, "rest_of_ranges"), total, " ranges");
	text_add(text, "\n");
}

REGISTER_TABLE(branch, branch_table);
REGISTER_TABLE(traced, traced_table);
