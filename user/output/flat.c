// SPDX-License-Identifier: GPL-2.0-only
/* One line for each entry, count or sample, without nested values: a row of a database table. A line has the
 * common members of its record, its keys, a value, and the total of its series since the run began. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"
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

/* The members of a code as they are written. The value is held, so that its address stays its own. */
#define CODE_TEXTS 512
struct code_text {
	json_t *code;
	struct compact text;
};

/* The total of a series. */
struct total {
	json_int_t sum;
	size_t length; /* of the series in bytes */
	char series[];
};

/* The format's own state. */
struct flat_own {
	struct map totals; /* of each series, by hash_bytes() */
	struct flattened_run run;
	struct code_text codes[CODE_TEXTS];
};

static struct flat_own *own_of(struct stream *stream)
{
	if (!stream->own)
		stream->own = xcalloc(1, sizeof(struct flat_own));
	return stream->own;
}

/* --- what all lines of a record have ---------------------------------------------------------- */

/* The first members of a line. `contained`: the container is told by others. */
static void envelope(struct stream *stream, __u64 time_ns, const double *interval_ms, bool contained,
		     struct fields *fields)
{
	struct flat_own *own = own_of(stream);

	flatten_run(&own->run, stream->start);
	fields_text(fields, "type", "flat", strlen("flat"));
	fields_text(fields, "schema_version", SCHEMA_VERSION, strlen(SCHEMA_VERSION));
	fields_time(fields, "time", time_ns);
	fields_text(fields, "run_id", stream->run_id, sizeof(stream->run_id) - 1);
	fields_number(fields, "seq", stream->records);
	fields_string(fields, "activity", stream->activity);
	fields_number(fields, "time_unix_ms", time_ns / 1000000);
	if (interval_ms)
		fields_value(fields, "interval_ms", json_real(*interval_ms));
	fields_value(fields, "host.name", json_incref(own->run.host));
	fields_value(fields, "host.emulated.model", json_incref(own->run.model));
	if (!contained)
		fields_value(fields, "container.id", json_incref(own->run.container));
}

static void envelope_of_record(struct stream *stream, const json_t *record, struct fields *fields)
{
	struct flattened_time time = flatten_time(record);

	envelope(stream, time.at.tv_sec * 1000000000ULL + time.at.tv_nsec,
		 time.interval ? &time.interval_ms : NULL, false, fields);
}

static struct flat begin_line(struct stream *stream, const json_t *record)
{
	struct flat flat = {.line = json_object()};
	struct fields fields;

	fields_begin(&fields);
	envelope_of_record(stream, record, &fields);
	fields_put(&fields, flat.line);
	fields_clear(&fields);
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

static int put_line(struct stream *stream)
{
	stream->records++;
	return sink_put(&stream->sink, stream->line.text, stream->line.used);
}

static int end_line(struct stream *stream, struct flat *flat)
{
	struct compact *line = &stream->line;

	do {
		line->used = 0;
		compact_add_value(line, flat->line);
		compact_add(line, "\n", 1);
	} while (line->used > RECORD_MAX && cut_stack(flat->line, line->used - RECORD_MAX));
	json_decref(flat->line);
	free(flat->series.text);
	return put_line(stream);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* The total of a series; NULL if there is no room for another one. */
static struct total *total_of(struct flat_own *own, const struct compact *series)
{
	__u64 key = hash_bytes(series->text, series->used);
	struct total *total;
	size_t at = 0;

	while ((total = map_find_next(&own->totals, key, &at)))
		if (total->length == series->used && !memcmp(total->series, series->text, total->length))
			return total;
	if (own->totals.nr >= TOTALS_MOST)
		return NULL;
	total = xmalloc(sizeof(*total) + series->used);
	*total = (struct total){.length = series->used};
	memcpy(total->series, series->text, series->used);
	map_put(&own->totals, key, total);
	return total;
}

/* Adds the value to the total of its series, and the total to the line. */
static void add_total(struct stream *stream, struct flat *flat)
{
	const json_t *value = json_object_get(flat->line, "value");
	struct total *total;

	if (!json_is_integer(value))
		return;
	total = total_of(own_of(stream), &flat->series);
	if (!total)
		return;
	total->sum += json_integer_value(value);
	json_object_set_new(flat->line, "total", json_integer(total->sum));
}

/* The rows of a record. The texts are made for the first row that is text. */
struct flat_taking {
	struct stream *stream;
	const json_t *record;
	struct compact head, behind_seq; /* the members that all lines have, but for the number of the line */
	struct compact series;
};

static int write_row(void *context, const struct row *row)
{
	const struct flat_taking *taking = context;
	struct flat flat = begin_line(taking->stream, taking->record);
	const char *name;
	json_t *value;

	json_object_foreach(row->keys, name, value) {
		series_add(&flat.series, name, value);
	}
	json_object_update(flat.line, row->keys);
	json_object_set(flat.line, "value", (json_t *)row->value);
	add_total(taking->stream, &flat);
	json_object_update_missing(flat.line, row->values);
	return end_line(taking->stream, &flat);
}

static void begin_texts(struct flat_taking *taking)
{
	struct stream *stream = taking->stream;
	struct compact *text = &taking->head;
	struct fields fields;

	fields_begin(&fields);
	envelope_of_record(stream, taking->record, &fields);
	for (size_t i = 0; i < fields.nr; i++)
		if (!strcmp(fields.list[i].name, "seq"))
			text = &taking->behind_seq;
		else
			compact_add_named(text, &fields.list[i]);
	fields_clear(&fields);
	compact_add_text(&taking->head, ",\"seq\":");
}

/* The number, if the text is an integer. */
static bool is_integer(const char *text, size_t length, json_int_t *number)
{
	char *end;

	errno = 0;
	*number = strtoll(text, &end, 10);
	return end == text + length && !errno;
}

static void append_total(struct flat_taking *taking, const struct row_text *row)
{
	struct compact *line = &taking->stream->line, *series = &taking->series;
	struct total *total;
	json_int_t value;

	if (!is_integer(row->value, row->value_length, &value))
		return;
	series->used = 0;
	if (taking->stream->activity)
		compact_add_text(series, taking->stream->activity);
	compact_add(series, row->series.text, row->series.used);
	total = total_of(own_of(taking->stream), series);
	if (!total)
		return;
	total->sum += value;
	compact_add_text(line, ",\"total\":");
	compact_add_integer(line, total->sum);
}

/* Writes the bytes that write_row() would. */
static int write_text(void *context, const struct row_text *row)
{
	struct flat_taking *taking = context;
	struct compact *line = &taking->stream->line;

	if (!taking->head.used)
		begin_texts(taking);
	line->used = 0;
	compact_add(line, taking->head.text, taking->head.used);
	compact_add_integer(line, taking->stream->records);
	compact_add(line, taking->behind_seq.text, taking->behind_seq.used);
	compact_add(line, row->keys.text, row->keys.used);
	if (row->value) {
		compact_add_text(line, ",\"value\":");
		compact_add(line, row->value, row->value_length);
		append_total(taking, row);
	}
	compact_add(line, row->values.text, row->values.used);
	compact_close(line, 0);
	compact_add(line, "\n", 1);
	return put_line(taking->stream);
}

static int write_flat(struct stream *stream, const json_t *record)
{
	struct flat_taking taking = {.stream = stream, .record = record};
	int err = flatten_texts(record, &stream->calls, write_text, write_row, &taking);

	free(taking.head.text);
	free(taking.behind_seq.text);
	free(taking.series.text);
	return err ?: flatten_losses(record, write_row, &taking);
}

/* --- samples of a stream ---------------------------------------------------------------------- */

/* Whether the row has the sample's members as they are, but for its code. */
static bool is_plain(const struct fields *fields)
{
	for (size_t i = 0; i < fields->nr; i++) {
		const struct field *field = &fields->list[i];

		if (field->kind == FIELD_VALUE && !strcmp(field->name, "stack"))
			return false;
	}
	return true;
}

static void learn_code(struct code_text *known, json_t *code)
{
	char full[CODE_MEMBER_ROOM];
	const char *member;
	json_t *value;

	json_decref(known->code);
	known->code = json_incref(code);
	known->text.used = 0;
	json_object_foreach(code, member, value)
		if (!json_is_array(value) && !json_is_object(value))
			compact_add_member(&known->text, ',', flatten_code_member("code", member, full),
					   value);
}

static void add_code(struct compact *line, struct flat_own *own, json_t *code)
{
	struct code_text *known = &own->codes[((size_t)code >> 4) % CODE_TEXTS];

	if (known->code != code)
		learn_code(known, code);
	compact_add(line, known->text.text, known->text.used);
}

/* Adds the sample's members, each after a comma. Those that are lists or objects are no values of a row. */
static void add_sample(struct compact *line, struct flat_own *own, const struct fields *fields)
{
	for (size_t i = 0; i < fields->nr; i++) {
		const struct field *field = &fields->list[i];

		if (field->kind == FIELD_VALUE && json_is_object(field->value))
			add_code(line, own, field->value);
		else if (field->kind != FIELD_RAW && field->kind != FIELD_HISTOGRAM &&
			 !(field->kind == FIELD_VALUE && json_is_array(field->value)) &&
			 !(field->kind == FIELD_TIME && !strcmp(field->name, "sample_time")))
			compact_add_named(line, field);
	}
}

/* A container of the sample takes the place of nhmtap's own. */
static void envelope_of_sample(struct stream *stream, const struct fields *fields, struct fields *first)
{
	__u64 time_ns = 0;
	bool contained = false;

	for (size_t i = 0; i < fields->nr; i++) {
		const struct field *field = &fields->list[i];

		if (field->kind == FIELD_TIME && !strcmp(field->name, "sample_time"))
			time_ns = field->number;
		else if (field->kind == FIELD_VALUE)
			contained |= !strcmp(field->name, "container.id");
	}
	envelope(stream, time_ns, NULL, contained, first);
}

static int write_fields(struct stream *stream, const char *type, const struct fields *fields)
{
	struct compact *line = &stream->line;
	struct fields first;
	json_t *record;
	int err;

	fields_begin(&first);
	if (!strcmp(type, "sample") && is_plain(fields)) {
		envelope_of_sample(stream, fields, &first);
		line->used = 0;
		compact_add_fields(line, &first);
		add_sample(line, own_of(stream), fields);
		compact_close(line, 0);
		compact_add(line, "\n", 1);
		fields_clear(&first);
		return put_line(stream);
	}
	record = json_pack("{s:s}", "type", type);
	fields_put(fields, record);
	err = write_flat(stream, record);
	json_decref(record);
	return err;
}

/* The keys of a series begin with these. */
static void begin_anew(struct stream *stream, const char *activity, const char *event)
{
	struct map *totals = &own_of(stream)->totals;
	json_t *name = json_string(event);
	struct compact first = {0};
	struct total *total;
	size_t at = 0;

	compact_add_text(&first, activity);
	series_add(&first, "event", name);
	while ((total = map_next(totals, &at)))
		if (total->length >= first.used && !memcmp(total->series, first.text, first.used))
			total->sum = 0;
	json_decref(name);
	free(first.text);
}

static void release(struct stream *stream)
{
	struct flat_own *own = stream->own;
	struct total *total;

	if (!own)
		return;
	for (size_t i = 0; i < CODE_TEXTS; i++) {
		json_decref(own->codes[i].code);
		free(own->codes[i].text.text);
	}
	flatten_run(&own->run, NULL);
	for (size_t at = 0; (total = map_next(&own->totals, &at));)
		free(total);
	map_release(&own->totals);
	free(own);
}

static const struct format flat = {
	.name = "flat",
	.help = "one line per entry, count or sample, nothing nested: rows for a database",
	.measured = true,
	.texts = true,
	.numbered = true,
	.write = write_flat,
	.write_fields = write_fields,
	.begin_anew = begin_anew,
	.release = release,
};
REGISTER_FORMAT(flat);
