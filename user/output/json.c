// SPDX-License-Identifier: GPL-2.0-only
/* Each record as a line of JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/same.h"
#include "output/output.h"
#include "record/alike.h"
#include "record/record.h"
#include "record/shorter.h"

#define LINE_TAIL 2 /* "}" and a newline */

/* So many single samples share a reading of the clock, which takes a tenth of the time of writing one. They
 * are written in some 10 µs, and never share it with what is written after they have been flushed. */
#define DATED_AT_ONCE 32

static const struct timespec *date(struct stream *stream, bool shares)
{
	struct dated *dated = &stream->dated;

	if (shares && dated->records) {
		dated->records--;
		return &dated->at;
	}
	clock_gettime(CLOCK_REALTIME, &dated->at);
	dated->records = DATED_AT_ONCE - 1;
	return &dated->at;
}

/* Where in an envelope the members are that change. */
enum { ENVELOPE_TIME = 2, ENVELOPE_RUN_ID, ENVELOPE_SEQ, ENVELOPE_ACTIVITY, ENVELOPE_MEMBERS };

/* What comes first in every record. `shares`: its time may be that of the record before. */
static void add_envelope(struct stream *stream, const char *type, bool shares, struct fields *fields)
{
	fields_string(fields, "type", type);
	fields_string(fields, "schema_version", SCHEMA_VERSION);
	fields_time(fields, "time", timespec_ns(date(stream, shares)));
	fields_text(fields, "run_id", stream->run_id, sizeof(stream->run_id) - 1);
	fields_number(fields, "seq", stream->records);
	fields_string(fields, "activity", stream->activity);
}

static int put_line(struct stream *stream, const char *line, size_t size)
{
	int err = sink_put(&stream->sink, line, size);

	stream->records++;
	return err;
}

/* Adds a member. For the list whose elements stream->elements holds already, these bytes are used. */
static void append_member(struct stream *stream, const char *name, const json_t *value)
{
	struct compact *line = &stream->line;
	const struct elements *elements = &stream->elements;

	if (value != elements->list) {
		compact_add_member(line, ',', name, value);
		return;
	}
	compact_add(line, ",\"", 2);
	compact_add_text(line, name);
	compact_add(line, "\":[", 3);
	compact_add(line, elements->text, elements->size);
	compact_add(line, "]", 1);
}

static int write_line(struct stream *stream, const json_t *record)
{
	/* A record that was not written by a stream yet has no schema_version. */
	bool bare = json_object_get(record, "schema_version");
	struct compact *line = &stream->line;
	struct fields first;
	const char *member;
	json_t *value;

	line->used = 0;
	if (!bare) {
		fields_begin(&first);
		add_envelope(stream, json_string_value(json_object_get(record, "type")), false, &first);
		compact_add_fields(line, &first);
	}
	json_object_foreach((json_t *)record, member, value) {
		if (bare || strcmp(member, "type"))
			append_member(stream, member, value);
	}
	compact_close(line, 0);
	compact_add(line, "\n", 1);
	return put_line(stream, line->text, line->used);
}

struct json_lines {
	struct alike_lines lines;
	struct fields first; /* the envelope of the last line */
	const char *type;    /* that it is of */
	char run_id[33];     /* the same */
};

static struct json_lines *own_of(struct stream *stream)
{
	return stream->own = stream->own ?: xcalloc(1, sizeof(struct json_lines));
}

/* Makes the envelope of a record. In that of another of the type only the time and the number are others, and
 * perhaps the activity. A stream that goes on with what another one had has an id of its own. */
static void begin_line(struct stream *stream, const char *type, struct json_lines *own)
{
	struct fields *first = &own->first;

	if (own->type == type && stream->activity && first->nr == ENVELOPE_MEMBERS &&
	    is_same(own->run_id, stream->run_id, sizeof(own->run_id))) {
		first->version++;
		first->changed = 1ULL << ENVELOPE_TIME | 1ULL << ENVELOPE_SEQ | 1ULL << ENVELOPE_ACTIVITY;
		first->list[ENVELOPE_TIME].number = timespec_ns(date(stream, true));
		first->list[ENVELOPE_SEQ].number = stream->records;
		field_set_string(&first->list[ENVELOPE_ACTIVITY], stream->activity);
		return;
	}
	own->type = type;
	memcpy(own->run_id, stream->run_id, sizeof(own->run_id));
	fields_begin(first);
	add_envelope(stream, type, true, first);
	fields_shape(first);
}

static int write_fields(struct stream *stream, const char *type, const struct fields *fields)
{
	struct json_lines *own = own_of(stream);
	struct alike_lines *lines = &own->lines;
	struct alike_place begun;
	size_t bytes;

	begin_line(stream, type, own);
	alike_begin(lines);
	alike_add(lines, &own->first);
	begun = lines->done;
	alike_add(lines, fields);
	bytes = alike_bytes(lines, lines->done.nr) + LINE_TAIL;
	if (bytes > RECORD_MAX) {
		struct fields shorter = fields_shorter(fields, bytes - RECORD_MAX);

		lines->done = begun;
		alike_add(lines, &shorter);
		fields_clear(&shorter);
	}
	bytes = alike_end(lines);
	return put_line(stream, lines->text.text, bytes);
}

static void release(struct stream *stream)
{
	struct json_lines *own = stream->own;

	if (own)
		alike_release(&own->lines);
	free(own);
}

static const struct format json = {
	.name = "json",
	.help = "one record per line",
	.lines = true,
	.write = write_line,
	.write_fields = write_fields,
	.release = release,
};
REGISTER_FORMAT(json);
