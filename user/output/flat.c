// SPDX-License-Identifier: GPL-2.0-only
/* One line for each entry, count or sample, without nested values: a row of a database table. A line has the
 * common members of its record, its keys, a value, and the total of its series since the run began. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output/flatten.h"
#include "output/member.h"
#include "output/output.h"
#include "record/compact.h"
#include "record/record.h"

/* The number of series whose totals are kept. Later series are written without a total. */
#define TOTALS_MOST 65536

/* The line that is being made, and the key of its series. */
struct flat {
	json_t *line;
	struct compact series;
};

/* --- what all lines of a record have ---------------------------------------------------------- */

static struct flat begin(struct stream *stream, const json_t *record)
{
	const json_t *resource = json_object_get(stream->start, "resource");
	struct flattened_time time = flatten_time(record);
	struct flat flat = {.line = json_object()};

	json_object_set_new(flat.line, "type", json_string("flat"));
	json_object_set_new(flat.line, "schema_version", json_string(SCHEMA_VERSION));
	json_object_set_new(flat.line, "time", value_time(&time.at));
	json_object_set_new(flat.line, "run_id", json_string(stream->run_id));
	json_object_set_new(flat.line, "seq", json_integer(stream->records));
	if (stream->activity)
		json_object_set_new(flat.line, "activity", json_string(stream->activity));
	json_object_set_new(flat.line, "time_unix_ms",
			    json_integer(time.at.tv_sec * 1000LL + time.at.tv_nsec / 1000000));
	if (time.interval)
		json_object_set_new(flat.line, "interval_ms", json_real(time.interval_ms));
	json_object_set(flat.line, "host.name", json_object_get(resource, "host.name"));
	json_object_set(flat.line, "host.emulated.model", json_object_get(resource, "host.emulated.model"));
	json_object_set(flat.line, "container.id", json_object_get(resource, "container.id"));
	if (stream->activity)
		compact_add_text(&flat.series, stream->activity);
	return flat;
}

/* Cuts whole functions off the outermost end of the stack until at least `bytes` bytes are gone. Returns
 * false if there is nothing to cut. */
static bool cut_stack(json_t *line, size_t bytes)
{
	const json_t *stack = json_object_get(line, "stack");
	const char *from = string(line, "stack"), *next;
	size_t length = json_string_length(stack);

	if (!length)
		return false;
	next = bytes < length ? strchr(from + bytes, ';') : NULL;
	json_object_set_new(line, "stack", next ? json_string(next + 1) : json_string(""));
	json_object_set_new(line, "truncated", json_true());
	return true;
}

static int end(struct stream *stream, struct flat *flat)
{
	struct compact *line = &stream->line;
	int err;

	do {
		line->used = 0;
		compact_add_value(line, flat->line);
		compact_add(line, "\n", 1);
	} while (line->used > RECORD_MAX && cut_stack(flat->line, line->used - RECORD_MAX));
	err = sink_put(&stream->sink, line->text, line->used);
	stream->records++;
	json_decref(flat->line);
	free(flat->series.text);
	return err;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Adds the value to the total of its series, and the total to the line. */
static void add_total(struct stream *stream, struct flat *flat)
{
	const json_t *value = json_object_get(flat->line, "value");
	json_t *total;

	if (!json_is_integer(value))
		return;
	if (!stream->own)
		stream->own = json_object();
	compact_add(&flat->series, "", 1);
	total = json_object_get(stream->own, flat->series.text);
	if (!total && json_object_size(stream->own) >= TOTALS_MOST)
		return;
	total = json_integer(json_integer_value(total) + json_integer_value(value));
	json_object_set_new(stream->own, flat->series.text, total);
	json_object_set(flat->line, "total", total);
}

struct flat_taking {
	struct stream *stream;
	const json_t *record;
};

static int write_row(void *context, const struct row *row)
{
	const struct flat_taking *taking = context;
	struct flat flat = begin(taking->stream, taking->record);
	const char *name;
	json_t *value;

	json_object_foreach(row->keys, name, value) {
		compact_add_text(&flat.series, name);
		compact_add(&flat.series, "=", 1);
		compact_add_value(&flat.series, value);
	}
	json_object_update(flat.line, row->keys);
	json_object_set(flat.line, "value", (json_t *)row->value);
	add_total(taking->stream, &flat);
	json_object_update_missing(flat.line, row->values);
	return end(taking->stream, &flat);
}

static int write_flat(struct stream *stream, const json_t *record)
{
	struct flat_taking taking = {stream, record};
	int err = flatten(record, &stream->calls, true, write_row, &taking);

	return err ?: flatten_losses(record, write_row, &taking);
}

/* The keys of a series begin with these. */
static void begin_anew(struct stream *stream, const char *activity, const char *event)
{
	json_t *name = json_string(event), *total;
	struct compact first = {0};
	const char *key;
	void *next;

	compact_add_text(&first, activity);
	compact_add_text(&first, "event=");
	compact_add_value(&first, name);
	json_object_foreach_safe(stream->own, next, key, total) if (!strncmp(key, first.text, first.used))
		json_object_del(stream->own, key);
	json_decref(name);
	free(first.text);
}

/* Its own state is an object: the total of each series. */
static void release(struct stream *stream)
{
	json_decref(stream->own);
}

static const struct format flat = {
	.name = "flat",
	.help = "one line per entry, count or sample, nothing nested: rows for a database",
	.measured = true,
	.numbered = true,
	.write = write_flat,
	.begin_anew = begin_anew,
	.release = release,
};
REGISTER_FORMAT(flat);
