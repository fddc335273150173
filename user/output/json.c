// SPDX-License-Identifier: GPL-2.0-only
/* A record a line. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/output.h"
#include "record/record.h"

static int add(const char *text, size_t size, void *data)
{
	struct stream *stream = data;

	if (stream->line_used + size > stream->line_room) {
		stream->line_room = 2 * (stream->line_used + size);
		stream->line = realloc(stream->line, stream->line_room);
	}
	memcpy(stream->line + stream->line_used, text, size);
	stream->line_used += size;
	return 0;
}

static void add_text(struct stream *stream, const char *text)
{
	add(text, strlen(text), stream);
}

static void add_integer(struct stream *stream, json_int_t number)
{
	char digits[24], *at = digits + sizeof(digits);
	unsigned long long left = number < 0 ? -(unsigned long long)number : (unsigned long long)number;

	do
		*--at = '0' + left % 10;
	while (left /= 10);
	if (number < 0)
		*--at = '-';
	add(at, digits + sizeof(digits) - at, stream);
}

/* Whether JSON has the text as it is, between quotes. */
static bool plain(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == '"' || text[i] == '\\')
			return false;
	return true;
}

/* Whole numbers and plain text, of which most records are made, are written here: jansson begins each
 * time by preparing to find loops. */
static int add_value(struct stream *stream, const json_t *value)
{
	if (json_is_integer(value)) {
		add_integer(stream, json_integer_value(value));
		return 0;
	}
	if (json_is_string(value) && plain(json_string_value(value), json_string_length(value))) {
		add("\"", 1, stream);
		add(json_string_value(value), json_string_length(value), stream);
		add("\"", 1, stream);
		return 0;
	}
	return json_dump_callback(value, add, stream,
				  JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
}

/* "{"type":"count","schema_version":…,"seq":7": what comes first in every record. */
static void begin(struct stream *stream, const char *type)
{
	char time[TIME_TEXT];
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	stream->line_used = 0;
	add_text(stream, "{\"type\":\"");
	add_text(stream, type);
	add_text(stream, "\",\"schema_version\":\"" SCHEMA_VERSION "\",\"time\":\"");
	add(time_text(&now, time), TIME_TEXT - 1, stream);
	add_text(stream, "\",\"run_id\":\"");
	add_text(stream, stream->run_id);
	add_text(stream, "\",\"seq\":");
	add_integer(stream, stream->records++);
}

/* The record's members, behind the envelope's where that is there; and the line's end. */
static int add_members(struct stream *stream, const json_t *record, bool enveloped)
{
	bool first = !enveloped;
	const char *member;
	json_t *value;

	json_object_foreach((json_t *)record, member, value) {
		if (enveloped && !strcmp(member, "type"))
			continue;
		/* Names of members are the program's own, without anything to escape. */
		add_text(stream, first ? "\"" : ",\"");
		first = false;
		add_text(stream, member);
		add("\":", 2, stream);
		if (add_value(stream, value))
			return -ENOMEM;
	}
	add("}\n", 2, stream);
	return sink_put(&stream->sink, stream->line, stream->line_used);
}

int output_json(struct stream *stream, const json_t *record)
{
	stream->line_used = 0;
	add("{", 1, stream);
	return add_members(stream, record, false);
}

int output_json_enveloped(struct stream *stream, const json_t *record)
{
	begin(stream, json_string_value(json_object_get(record, "type")));
	return add_members(stream, record, true);
}
