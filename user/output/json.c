// SPDX-License-Identifier: GPL-2.0-only
/* Each record as a line of JSON. */
#include <string.h>

#include "output/output.h"
#include "record/record.h"
#include "record/shorter.h"

/* Copies a string literal without its 0, and returns the end. */
#define PUT(at, text) mempcpy(at, text, sizeof(text) - 1)

#define LINE_TAIL 2 /* "}" and a newline */

#define BEGIN_MOST 200 /* bytes of the members up to seq, without the type */

/* So many single samples share a reading of the clock, which takes a tenth of the time of writing one. They
 * are written in some 10 µs, and never share it with what is written after they have been flushed. */
#define DATED_AT_ONCE 16

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

/* "{"type":"count","schema_version":…,"seq":7": what comes first in every record. `shares`: its time may be
 * that of the record before. */
static void begin_line(struct stream *stream, const char *type, bool shares)
{
	struct compact *line = &stream->line;
	size_t length = strlen(type);
	char *at, time[TIME_TEXT];

	line->used = 0;
	at = compact_reserve(line, length + BEGIN_MOST);
	at = PUT(at, "{\"type\":\"");
	at = mempcpy(at, type, length);
	at = PUT(at, "\",\"schema_version\":\"" SCHEMA_VERSION "\",\"time\":\"");
	at = mempcpy(at, time_text(date(stream, shares), time), TIME_TEXT - 1);
	at = PUT(at, "\",\"run_id\":\"");
	at = mempcpy(at, stream->run_id, sizeof(stream->run_id) - 1);
	at = PUT(at, "\",\"seq\":");
	line->used = at - line->text;
	compact_add_integer(line, stream->records);
	if (stream->activity) { /* an activity's name contains nothing to escape */
		compact_add_text(line, ",\"activity\":\"");
		compact_add_text(line, stream->activity);
		compact_add(line, "\"", 1);
	}
}

static int end_line(struct stream *stream)
{
	int err;

	compact_add(&stream->line, "\n", 1);
	err = sink_put(&stream->sink, stream->line.text, stream->line.used);
	stream->records++;
	return err;
}

/* Adds a member. For the list whose elements stream->elements holds already, these bytes are used. */
static void append_member(struct stream *stream, char separator, const char *name, const json_t *value)
{
	struct compact *line = &stream->line;
	const struct elements *elements = &stream->elements;

	if (value != elements->list) {
		compact_add_member(line, separator, name, value);
		return;
	}
	compact_add(line, &separator, 1);
	compact_add(line, "\"", 1);
	compact_add_text(line, name);
	compact_add(line, "\":[", 3);
	compact_add(line, elements->text, elements->size);
	compact_add(line, "]", 1);
}

static int write_line(struct stream *stream, const json_t *record)
{
	/* A record that was not written by a stream yet has no schema_version. */
	bool bare = json_object_get(record, "schema_version");
	const char *member;
	json_t *value;

	stream->line.used = 0;
	if (!bare)
		begin_line(stream, json_string_value(json_object_get(record, "type")), false);
	json_object_foreach((json_t *)record, member, value) {
		if (bare || strcmp(member, "type"))
			append_member(stream, stream->line.used ? ',' : '{', member, value);
	}
	compact_add(&stream->line, "}", 1);
	return end_line(stream);
}

static int write_fields(struct stream *stream, const char *type, const struct fields *fields)
{
	struct compact *line = &stream->line;
	size_t begun;

	begin_line(stream, type, true);
	begun = line->used;
	compact_add_fields(line, fields);
	if (line->used + LINE_TAIL > RECORD_MAX) {
		struct fields shorter = fields_shorter(fields, line->used + LINE_TAIL - RECORD_MAX);

		line->used = begun;
		compact_add_fields(line, &shorter);
		fields_clear(&shorter);
	}
	compact_add(line, "}", 1);
	return end_line(stream);
}

static const struct format json = {
	.name = "json",
	.help = "one record per line",
	.lines = true,
	.write = write_line,
	.write_fields = write_fields,
};
REGISTER_FORMAT(json);
