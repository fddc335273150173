// SPDX-License-Identifier: GPL-2.0-only
#include "output/profiles.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "output/member.h"
#include "output/text.h"

struct measured {
	const char *type; /* type of the records */
	bool traced;	  /* of a trace: its branches have no periods */
	struct measure measures[MEASURES];
};

static const struct measured measured[] = {
	{"profile", false, {{"samples", "samples", "count"}, {.member = "period"}}},
	{"mem",
	 false,
	 {{"samples", "samples", "count"},
	  {.member = "period"},
	  {"latency_sum_period", "latency", "cycles"}}},
	{"branch",
	 false,
	 {{"count", "branches", "count"},
	  {"mispredicted", "mispredicted", "count"},
	  {"mispredicted_period", "mispredicted_period", "count"},
	  {.member = "period"}}},
	{"branch", true, {{"count", "branches", "count"}, {"mispredicted", "mispredicted", "count"}}},
};

const struct measure *measures_of(const json_t *record)
{
	bool traced = json_object_get(record, "trace");

	for (size_t i = 0; i < ARRAY_SIZE(measured); i++)
		if (!strcmp(string(record, "type"), measured[i].type) && traced == measured[i].traced)
			return measured[i].measures;
	return NULL;
}

bool recorded_clock(const json_t *event)
{
	const json_t *attr = json_object_get(event, "attr");
	const char *config = string(attr, "config");

	return integer(attr, "type") == 1 && (!strcmp(config, "0x0") || !strcmp(config, "0x1"));
}

struct measure measure_of_event(const struct measure *measure, const json_t *event)
{
	bool clock = recorded_clock(event);

	if (measure->type)
		return *measure;
	return (struct measure){measure->member, clock ? "cpu" : string(event, "name"),
				clock ? "nanoseconds" : "count"};
}

size_t measure_main(const struct measure *measures)
{
	for (size_t i = 0; i < MEASURES && measures[i].member; i++)
		if (!measures[i].type)
			return i;
	return 0;
}

const json_t *profile_event(const struct stream *stream, const json_t *record)
{
	const json_t *events = json_object_get(stream->events, stream->activity ? stream->activity : "");
	json_t *event;
	size_t i;

	json_array_foreach(events, i, event)
		if (!strcmp(string(event, "name"), string(record, "event")) &&
		    integer(event, "nth") == integer(record, "nth"))
			return event;
	return json_array_get(events, 0);
}

char *profile_event_key(const struct stream *stream, const json_t *record)
{
	return xasprintf("%s\n%s\n%lld", stream->activity ?: "", string(record, "event"),
			 (long long)integer(record, "nth"));
}

static const json_t *column_event(const struct profile_columns *columns, size_t i)
{
	return json_array_get(columns->events, integer(json_array_get(columns->list, i), "event"));
}

static void add_columns(struct profile_columns *columns, const struct stream *stream, const json_t *record,
			const char *key)
{
	const struct measure *measures = measures_of(record);

	for (size_t i = 0; i < MEASURES && measures[i].member; i++) {
		struct measure measure = measure_of_event(&measures[i], profile_event(stream, record));

		json_array_append_new(columns->list, json_pack("{sI ss* ss* sb}", "event",
							       (json_int_t)json_array_size(columns->events),
							       "type", measure.type, "unit", measure.unit,
							       "main", i == measure_main(measures)));
	}
	json_array_append_new(columns->events,
			      json_pack("{ss ss sI ss}", "key", key, "name", string(record, "event"), "nth",
					integer(record, "nth"), "activity", stream->activity ?: ""));
}

size_t profile_columns_of(struct profile_columns *columns, const struct stream *stream, const json_t *record)
{
	char *key = profile_event_key(stream, record);
	size_t first = 0;

	columns->events = columns->events ?: json_array();
	columns->list = columns->list ?: json_array();
	while (first < profile_columns_nr(columns) &&
	       strcmp(string(column_event(columns, first), "key"), key))
		first++;
	if (first == profile_columns_nr(columns))
		add_columns(columns, stream, record, key);
	free(key);
	return first;
}

size_t profile_columns_nr(const struct profile_columns *columns)
{
	return json_array_size(columns->list);
}

char *profile_column_name(const struct profile_columns *columns, size_t i)
{
	const json_t *column = json_array_get(columns->list, i), *event = column_event(columns, i), *other;
	bool sole = json_array_size(columns->events) == 1, mixed = false;
	const char *activity = string(event, "activity");
	struct text name = {0};
	size_t nr;

	json_array_foreach(columns->events, nr, other)
		mixed = mixed || strcmp(string(other, "activity"), activity);
	if (sole || !json_is_true(json_object_get(column, "main")))
		text_add(&name, "%s%s", string(column, "type"), sole ? "" : " of ");
	if (!sole)
		text_add(&name, "%s", string(event, "name"));
	if (!sole && integer(event, "nth"))
		text_add(&name, " %lld", (long long)integer(event, "nth"));
	if (mixed)
		text_add(&name, " in %s", activity);
	return name.bytes;
}

bool profile_column_is_time(const struct profile_columns *columns, size_t i)
{
	return !strcmp(string(json_array_get(columns->list, i), "unit"), "nanoseconds");
}

void profile_columns_release(struct profile_columns *columns)
{
	json_decref(columns->events);
	json_decref(columns->list);
	*columns = (struct profile_columns){0};
}

json_int_t profile_period(const json_t *event, const json_t *record)
{
	const json_t *attr = json_object_get(event, "attr");
	json_int_t frequency = integer(attr, "sample_freq"), samples = 0, period = 0,
		   asked = !frequency		   ? integer(event, "sample_distance")
			   : recorded_clock(event) ? 1000000000 / frequency
						   : 0;
	json_t *entry;
	size_t i;

	if (asked && !json_object_get(record, "share"))
		return asked;
	json_array_foreach(json_object_get(record, "entries"), i, entry) {
		samples += integer(entry, json_object_get(entry, "count") ? "count" : "samples");
		period += integer(entry, "period");
	}
	return samples ? period / samples : asked;
}

/* `files` is {module: {"first": number, "ids": {build-id: number}}}. The first file takes the first build-id.
 */
struct profile_file profile_file(json_t *files, const json_t *frame, size_t next)
{
	const char *module = string(frame, "module"), *build_id = string(frame, "build_id");
	json_t *known = json_object_get(files, module), *ids;
	struct profile_file file = {0};

	if (!*module)
		return file;
	if (!known) {
		known = json_pack("{sI s{}}", "first", (json_int_t)next, "ids");
		json_object_set_new(files, module, known);
	}
	ids = json_object_get(known, "ids");
	file.number = integer(known, "first");
	if (!*build_id)
		return file;
	if (json_object_get(ids, build_id)) {
		file.number = integer(ids, build_id);
		return file;
	}
	if (json_object_size(ids))
		file.number = next;
	file.build_id = build_id;
	json_object_set_new(ids, build_id, json_integer(file.number));
	return file;
}

#define RANGE_BITS 40 /* each file's range has 2^40 addresses: 1 TiB */

uint64_t profile_range(const json_t *frame, size_t number, uint64_t *limit)
{
	bool kernel = calls_of_kernel(frame);

	*limit = kernel ? ~0ULL : ((uint64_t)number + 1) << RANGE_BITS;
	return kernel ? 1ULL << 63 : (uint64_t)number << RANGE_BITS;
}

uint64_t profile_address(const json_t *frame, uint64_t start)
{
	const char *offset = string(frame, *string(frame, "offset") ? "offset" : "address");
	uint64_t address = strtoull(offset, NULL, 16) - json_is_true(json_object_get(frame, "return"));

	if (!*offset)
		return start;
	return calls_of_kernel(frame) || !start ? address : start + (address & ((1ULL << RANGE_BITS) - 1));
}

char *profile_title(const struct stream *stream)
{
	const json_t *emulated = emulated_host(stream->start);
	const char *program = measured_program(stream->start);

	if (!emulated)
		return xstrdup(program ? program : "nhmtap");
	return xasprintf("%s (emulated machine: model %s, version %s)", program ? program : "nhmtap",
			 string(emulated, "model"), string(emulated, "version"));
}

int profile_put_json(struct stream *stream, json_t *document)
{
	struct compact line = {0};
	int err;

	compact_add_value(&line, document);
	json_decref(document);
	compact_add(&line, "\n", 1);
	err = sink_put(&stream->sink, line.text, line.used);
	free(line.text);
	return err;
}

int profile_check_events(const struct stream *stream, const struct options *options, size_t nr_events,
			 struct refusal *refusal)
{
	if (nr_events <= 1)
		return 0;
	refuse(refusal, STATUS_USAGE, "option --format %s with several events", stream->format->name);
	because(refusal, "it does not say of which event a stack is");
	return instead(refusal, "name one event, or write json");
}

int profile_check_intervals(const struct stream *stream, const struct options *options, size_t nr_events,
			    struct refusal *refusal)
{
	const struct format *format = stream->format;

	if (!options->interval_ms || stream_has_documents(stream))
		return 0;
	refuse(refusal, STATUS_USAGE, "option --interval with --format %s", format->name);
	because(refusal, "a file in this format is one profile");
	return instead(
		refusal,
		"give each interval a file of its own, DIR/%%t%s; outside of a CONFIG, you may leave the "
		"interval out instead",
		format->ending);
}

int profile_check(const struct stream *stream, const struct options *options, size_t nr_events,
		  struct refusal *refusal)
{
	return profile_check_events(stream, options, nr_events, refusal)
		       ?: profile_check_intervals(stream, options, nr_events, refusal);
}
