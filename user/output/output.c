// SPDX-License-Identifier: GPL-2.0-only
#include "output/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "record/record.h"

static const output_fn outputs[] = {
	[FORMAT_JSON] = output_json,
	[FORMAT_TABLE] = output_table,
	[FORMAT_AUTOFDO] = output_autofdo,
	[FORMAT_FOLDED] = output_folded,
	[FORMAT_PPROF] = output_pprof,
};

int stream_open(struct stream *stream, const struct options *options, struct refusal *refusal)
{
	unsigned char id[16];

	*stream = (struct stream){0};
	if (sink_open(&stream->sink, options->output, refusal))
		return -1;
	stream->format = options->format	  ? options->format
			 : stream->sink.terminal ? FORMAT_TABLE
						 : FORMAT_JSON;
	stream->output = outputs[stream->format];
	stream->verbose = options->verbose;
	stream->intervals = options->interval_ms || options->control;
	/* Insecure: an id must differ from others, not be a secret, and must not wait for entropy at boot. */
	if (getrandom(id, sizeof(id), GRND_INSECURE) != sizeof(id))
		memset(id, 0, sizeof(id));
	for (size_t i = 0; i < sizeof(id); i++)
		sprintf(stream->run_id + 2 * i, "%02x", id[i]);
	return 0;
}

/* What comes first in every record. */
static json_t *with_envelope(struct stream *stream, const json_t *record)
{
	struct timespec now;
	json_t *whole = json_object();

	clock_gettime(CLOCK_REALTIME, &now);
	json_object_set(whole, "type", json_object_get(record, "type"));
	json_object_set_new(whole, "schema_version", json_string(SCHEMA_VERSION));
	json_object_set_new(whole, "time", value_time(&now));
	json_object_set_new(whole, "run_id", json_string(stream->run_id));
	json_object_set_new(whole, "seq", json_integer(stream->records++));
	json_object_update_missing(whole, (json_t *)record);
	return whole;
}

static int output(struct stream *stream, const json_t *record)
{
	json_t *whole;
	int err;

	if (stream->format == FORMAT_JSON)
		return output_json_enveloped(stream, record);
	whole = with_envelope(stream, record);
	err = stream->output(stream, whole);
	json_decref(whole);
	return err;
}

struct sizes sizes_of(const json_t *list)
{
	struct sizes sizes = {.total = json_array_size(list)};

	sizes.bytes = calloc(sizes.total + 1, sizeof(*sizes.bytes));
	for (size_t i = 0; i < sizes.total; i++)
		sizes.bytes[i] = compact_bytes(json_array_get(list, i));
	return sizes;
}

size_t sizes_fitting(const struct sizes *sizes, size_t first, size_t base)
{
	size_t count = 0, used = base;

	for (; first + count < sizes->total; count++) {
		used += sizes->bytes[first + count] + 1;
		if (count && used > RECORD_MAX)
			break;
	}
	return count;
}

static json_t *part_of(const json_t *record, size_t part, const char *list, size_t first, size_t count,
		       const char *const *kept)
{
	json_t *piece = part == 1 || !kept ? json_copy((json_t *)record) : json_object();
	json_t *elements = json_array();

	for (; part > 1 && kept && *kept; kept++)
		json_object_set(piece, *kept, json_object_get(record, *kept));
	for (size_t i = first; i < first + count; i++)
		json_array_append(elements, json_array_get(json_object_get(record, list), i));
	json_object_set_new(piece, list, elements);
	return piece;
}

/* The room that the envelope, part and parts take at most. */
#define ENVELOPE_MAX 220

/* In one piece, if it fits. */
static int write_parts(struct stream *stream, const json_t *record, const char *list,
		       const char *const *kept)
{
	const json_t *elements = json_object_get(record, list);
	struct sizes sizes = sizes_of(elements);
	size_t part = 0, parts = 0, base;
	json_t *empty = part_of(record, 1, list, 0, 0, NULL);
	int err = 0;

	base = compact_bytes(empty) + ENVELOPE_MAX;
	json_decref(empty);
	for (size_t first = 0; first < sizes.total; first += sizes_fitting(&sizes, first, base))
		parts++;
	if (parts < 2)
		err = output(stream, record);
	for (size_t first = 0, count; parts > 1 && first < sizes.total && !err; first += count) {
		json_t *piece;

		count = sizes_fitting(&sizes, first, base);
		piece = part_of(record, ++part, list, first, count, kept);
		json_object_set_new(piece, "part", json_integer(part));
		json_object_set_new(piece, "parts", json_integer(parts));
		err = output(stream, piece);
		json_decref(piece);
	}
	free(sizes.bytes);
	return err;
}

static void remember(struct stream *stream, json_t *record)
{
	const char *type = json_string_value(json_object_get(record, "type"));

	if (!strcmp(type, "frames"))
		calls_define(&stream->calls, record);
	if (!strcmp(type, "start") && !stream->start)
		stream->start = json_incref(record);
}

int stream_write(struct stream *stream, json_t *record, const char *list, const char *const *kept)
{
	int err;

	if (stream->format != FORMAT_JSON)
		remember(stream, record);
	if (list && stream->format == FORMAT_JSON)
		err = write_parts(stream, record, list, kept);
	else
		err = output(stream, record);
	json_decref(record);
	return err;
}

int stream_close(struct stream *stream)
{
	free(stream->line.text);
	stream->line = (struct compact){0};
	calls_release(&stream->calls);
	json_decref(stream->start);
	return sink_close(&stream->sink);
}
