// SPDX-License-Identifier: GPL-2.0-only
/* A record a line. */
#include <string.h>

#include "output/output.h"
#include "record/record.h"

/* "{"type":"count","schema_version":…,"seq":7": what comes first in every record. */
static void begin(struct stream *stream, const char *type)
{
	struct compact *line = &stream->line;
	char time[TIME_TEXT];
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	compact_add_text(line, "{\"type\":\"");
	compact_add_text(line, type);
	compact_add_text(line, "\",\"schema_version\":\"" SCHEMA_VERSION "\",\"time\":\"");
	compact_add(line, time_text(&now, time), TIME_TEXT - 1);
	compact_add_text(line, "\",\"run_id\":\"");
	compact_add_text(line, stream->run_id);
	compact_add_text(line, "\",\"seq\":");
	compact_add_integer(line, stream->records++);
}

static int end(struct stream *stream)
{
	compact_add(&stream->line, "\n", 1);
	return sink_put(&stream->sink, stream->line.text, stream->line.used);
}

int output_json(struct stream *stream, const json_t *record)
{
	stream->line.used = 0;
	compact_add_value(&stream->line, record);
	return end(stream);
}

int output_json_enveloped(struct stream *stream, const json_t *record)
{
	struct compact *line = &stream->line;
	const char *member;
	json_t *value;

	line->used = 0;
	begin(stream, json_string_value(json_object_get(record, "type")));
	json_object_foreach((json_t *)record, member, value) {
		if (!strcmp(member, "type"))
			continue;
		/* The record's own members have nothing to escape. */
		compact_add(line, ",\"", 2);
		compact_add_text(line, member);
		compact_add(line, "\":", 2);
		compact_add_value(line, value);
	}
	compact_add(line, "}", 1);
	return end(stream);
}
