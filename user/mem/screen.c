// SPDX-License-Identifier: GPL-2.0-only
/* The tables of mem: latencies by source as a histogram, and lines that cores share. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "output/remarks.h"
#include "output/rows.h"
#include "output/table.h"

#define FIRST_BUCKET 2 /* 4 cycles, the shortest latency of a load; guide, section 3.7 */
#define LAST_BUCKET  15

/* Draws the number of loads in each bucket as a column of one of eight heights; the fullest bucket is the
 * highest. */
static void add_histogram(struct text *text, const json_t *histogram)
{
	static const char *const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	json_int_t counts[LAST_BUCKET + 1] = {0}, most = 0;
	char bound[24];

	for (int i = 0; i <= LAST_BUCKET; i++) {
		snprintf(bound, sizeof(bound), "%d", 1 << i);
		counts[i] = integer(histogram, bound);
		if (counts[i] > most)
			most = counts[i];
	}
	for (int i = FIRST_BUCKET; i <= LAST_BUCKET; i++)
		text_add(text, "%s", counts[i] ? heights[counts[i] * 7 / most] : "·");
}

/* Of the loads, and so weighed by what the samples stand for. */
static json_int_t mean_latency(const json_t *value)
{
	const json_t *histogram = json_object_get(value, "latency_histogram_period");
	json_int_t measured = 0;
	const char *bound;
	json_t *count;

	json_object_foreach((json_t *)histogram, bound, count)
		measured += json_integer_value(count);
	return measured ? (integer(value, "latency_sum_period") + measured / 2) / measured : 0;
}

/* Whether any sample has a latency; stores and page faults have none. */
static bool has_latency(const json_t *sources)
{
	json_t *source;
	size_t i;

	json_array_foreach(sources, i, source)
		if (json_object_size(json_object_get(source, "latency_histogram")))
			return true;
	return false;
}

static void latency_cells(struct text *text, const json_t *source)
{
	char longest[40];

	text_add(text, " %5lld %6s ", (long long)mean_latency(source),
		 row_grouped(integer(source, "latency_max"), longest, sizeof(longest)));
	add_histogram(text, json_object_get(source, "latency_histogram_period"));
}

static void source_rows(struct text *text, const json_t *sources)
{
	struct whole whole = whole_of(sources, NULL);
	bool latency = has_latency(sources);
	json_t *source;
	size_t i;

	text_add(text, "%-26s" ROW_WEIGHT_HEADINGS, "source");
	if (latency)
		text_add(text, " %5s %6s %s", "mean", "max", "4 16  256 4k");
	text_add(text, "\n");
	json_array_foreach(sources, i, source) {
		text_add(text, "%-26s", string(source, "source"));
		row_weight(text, source, &whole);
		if (latency)
			latency_cells(text, source);
		row_end(text);
	}
}

/* Whether entries have keys other than the source. If not, they repeat the list of sources. */
static bool has_other_keys(const json_t *entries)
{
	const json_t *first = json_array_get(entries, 0);
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)first, name, value)
		if (row_is_key(name) && strcmp(name, "source"))
			return true;
	return false;
}

static void mem_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *samples = json_object_get(record, "samples");
	const json_t *entries = json_object_get(record, "entries"), *rest = json_object_get(record, "rest");
	struct whole whole = whole_of(entries, rest);
	json_int_t total = integer(samples, "aggregated");
	char number[40], event[512];

	row_time(text, stream, record);
	row_cell(json_object_get(record, "event"), event, sizeof(event));
	text_add(text, "%s: %s in %.3f s%s\n", event, row_counted(total, "sample", number, sizeof(number)),
		 integer(record, "duration_ns") / 1e9,
		 has_latency(json_object_get(record, "sources")) ? ", latency in core cycles" : "");
	lines_of_status(text, record);
	if (total)
		source_rows(text, json_object_get(record, "sources"));
	if (json_object_get(record, "stacks")) {
		rows_of_stacks(text, &stream->calls, entries, &whole);
		row_of_rest(text, rest, &whole);
	} else if (has_other_keys(entries) && !json_object_get(stream->start, "annotate")) {
		rows_of_entries(text, entries, &whole);
		row_of_rest(text, rest, &whole);
	}
	text_add(text, "\n");
}

/* --- lines that cores share ------------------------------------------------------------------- */

static void shared_line_table(struct text *text, const struct stream *stream, const json_t *record)
{
	json_int_t common = integer(record, "offsets_in_common");
	const json_t *entries = json_object_get(record, "entries");
	struct whole whole = whole_of(entries, NULL);
	char one[40], other[40], places[40];

	text_add(text, "line %s: %s, %lld found it modified by another core, %lld in another's cache\n",
		 string(record, "cacheline"), row_counted(integer(record, "loads"), "load", one, sizeof(one)),
		 (long long)integer(record, "modified"), (long long)integer(record, "other_core"));
	if (integer(record, "stores"))
		text_add(text, "  %s; %s loaded, %lld stored\n",
			 row_counted(integer(record, "stores"), "store", one, sizeof(one)),
			 row_counted(integer(record, "readers"), "thread", other, sizeof(other)),
			 (long long)integer(record, "writers"));
	text_add(text, "  %s on %s %s %s in it, ",
		 row_counted(integer(record, "threads"), "thread", one, sizeof(one)),
		 row_counted(integer(record, "cpus"), "CPU", other, sizeof(other)),
		 integer(record, "stores") ? "used" : "loaded from",
		 row_counted(integer(record, "offsets"), "place", places, sizeof(places)));
	if (!common && integer(record, "threads") > 1)
		text_add(text, "none in common: false sharing?\n");
	else
		text_add(text, "%lld of them in common\n", (long long)common);
	rows_of_entries(text, entries, &whole);
	text_add(text, "\n");
}

REGISTER_TABLE(mem, mem_table);
REGISTER_TABLE(shared_line, shared_line_table);
