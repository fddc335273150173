// SPDX-License-Identifier: GPL-2.0-only
/*
 * One entry or count a line, and nothing nested: what a table of a database takes as its row. A line has
 * what its record has, its keys, a value, and the total of this series since the run began.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output/calls.h"
#include "output/member.h"
#include "output/output.h"
#include "output/text.h"
#include "record/compact.h"
#include "record/record.h"

/* Series whose totals are kept; those that come later have none. */
#define TOTALS_MOST 65536

/* What becomes lines of a type of records. */
struct flattened {
	const char *type;
	const char *list;  /* its entries; NULL: the record is one */
	const char *value; /* of an entry: what sums up */
};

static const struct flattened flattened[] = {
	{"count", NULL, "value"},      {"metric", NULL, "value"},     {"profile", "entries", "samples"},
	{"mem", "entries", "samples"}, {"offcore", "cells", "value"}, {"branch", "entries", "count"},
};
#define FLATTENED (sizeof(flattened) / sizeof(flattened[0]))

/* A line while it is made: what tells its series apart, then what was measured. */
struct flat {
	json_t *line, *values;
	struct compact series;
};

/* --- members ---------------------------------------------------------------------------------- */

/* Members that tell no series apart. */
static bool is_measured(const char *name)
{
	static const char *const names[] = {
		"value",      "period",	     "mispredicted", "latency_sum",   "latency_max",   "enabled_ns",
		"running_ns", "scaled",	     "bytes",	     "value_in_unit", "running_share", "status",
		"why",	      "merged",	     "cpus_missing", "together",      "truncated",     "entries",
		"repeat",     "description", "formula",	     "unit",	      "part",	       "parts",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static void add_key(struct flat *flat, const char *name, json_t *value)
{
	json_object_set(flat->line, name, value);
	compact_add_text(&flat->series, name);
	compact_add(&flat->series, "=", 1);
	compact_add_value(&flat->series, value);
}

/* A piece of code: symbol and module have no prefix where there is but one. */
static void add_code(struct flat *flat, const char *name, const json_t *code)
{
	bool alone = !strcmp(name, "code") || !strcmp(name, "ip");
	char full[80];
	const char *member;
	json_t *value;

	json_object_foreach((json_t *)code, member, value)
	{
		bool plain = alone && (!strcmp(member, "symbol") || !strcmp(member, "module"));

		snprintf(full, sizeof(full), "%s_%s", alone ? "code" : name, member);
		if (!json_is_array(value) && !json_is_object(value))
			add_key(flat, plain ? member : full, value);
	}
}

/* From the outermost function to the innermost, as folded stacks have them. */
static void add_stack(struct flat *flat, const struct calls *calls, const json_t *stack)
{
	struct text text = {0};
	json_t *value;

	for (size_t i = json_array_size(stack); i--;) {
		const json_t *frame = calls_frame(calls, json_integer_value(json_array_get(stack, i)));
		char name[CALLS_NAME_MAX];

		for (size_t call = calls_in(frame); call--;) {
			struct call at = calls_at(frame, call);

			text_add(&text, "%s%s", text.used ? ";" : "", calls_name(&at, name, sizeof(name)));
		}
	}
	value = text.used ? value_text(text.bytes, text.used) : json_string("");
	add_key(flat, "stack", value);
	json_decref(value);
	free(text.bytes);
}

/* `sum`: the member that is the value. */
static void add_members(struct flat *flat, const struct stream *stream, const json_t *from, const char *sum)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)from, name, value)
	{
		if (!strcmp(name, "type") || !strcmp(name, "start_time") || !strcmp(name, "duration_ns"))
			continue;
		if (!strcmp(name, sum))
			json_object_set(flat->line, "value", value);
		else if (!strcmp(name, "stack"))
			add_stack(flat, &stream->calls, value);
		else if (json_is_object(value) &&
			 (json_object_get(value, "module") || json_object_get(value, "address")))
			add_code(flat, name, value);
		else if (json_is_object(value) || json_is_array(value))
			continue;
		else if (is_measured(name))
			json_object_set(flat->values, name, value);
		else
			add_key(flat, name, value);
	}
}

/* --- what all lines of a record have ---------------------------------------------------------- */

/* "2026-01-31T23:59:59.123456789Z" → ns since 1970. */
static __u64 time_of(const char *text)
{
	struct tm tm = {0};
	const char *fraction = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

	return fraction ? timegm(&tm) * 1000000000ULL + strtoull(fraction + 1, NULL, 10) : 0;
}

static struct flat begin(struct stream *stream, const json_t *record)
{
	const json_t *resource = json_object_get(stream->start, "resource");
	__u64 length = integer(record, "duration_ns"), start = time_of(string(record, "start_time"));
	struct flat flat = {.line = json_object(), .values = json_object()};
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (start)
		now = (struct timespec){(start + length) / 1000000000, (start + length) % 1000000000};
	json_object_set_new(flat.line, "type", json_string("flat"));
	json_object_set_new(flat.line, "schema_version", json_string(SCHEMA_VERSION));
	json_object_set_new(flat.line, "time", value_time(&now));
	json_object_set_new(flat.line, "run_id", json_string(stream->run_id));
	json_object_set_new(flat.line, "seq", json_integer(stream->records));
	if (stream->activity)
		json_object_set_new(flat.line, "activity", json_string(stream->activity));
	json_object_set_new(flat.line, "time_unix_ms",
			    json_integer(now.tv_sec * 1000LL + now.tv_nsec / 1000000));
	if (start)
		json_object_set_new(flat.line, "interval_ms", json_real(length / 1e6));
	json_object_set(flat.line, "host.name", json_object_get(resource, "host.name"));
	json_object_set(flat.line, "container.id", json_object_get(resource, "container.id"));
	if (stream->activity)
		compact_add_text(&flat.series, stream->activity);
	return flat;
}

static int end(struct stream *stream, struct flat *flat)
{
	struct compact *line = &stream->line;
	int err;

	json_object_update_missing(flat->line, flat->values);
	line->used = 0;
	compact_add_value(line, flat->line);
	compact_add(line, "\n", 1);
	err = sink_put(&stream->sink, line->text, line->used);
	stream->records++;
	json_decref(flat->line);
	json_decref(flat->values);
	free(flat->series.text);
	return err;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Adds the value to the total of its series. */
static void add_total(struct stream *stream, struct flat *flat)
{
	const json_t *value = json_object_get(flat->line, "value");
	json_t *total;

	if (!json_is_integer(value))
		return;
	if (!stream->totals)
		stream->totals = json_object();
	compact_add(&flat->series, "", 1);
	total = json_object_get(stream->totals, flat->series.text);
	if (!total && json_object_size(stream->totals) >= TOTALS_MOST)
		return;
	total = json_integer(json_integer_value(total) + json_integer_value(value));
	json_object_set_new(stream->totals, flat->series.text, total);
	json_object_set(flat->line, "total", total);
}

static int write_entry(struct stream *stream, const json_t *record, const json_t *entry, const char *sum,
		       bool rest)
{
	static const char *const shared[] = {
		"event",       "cpu",	       "node",	 "socket",	 "core",
		"tid",	       "comm",	       "cgroup", "container.id", "container.runtime",
		"k8s.pod.uid", "systemd.unit", NULL};
	struct flat flat = begin(stream, record);

	for (size_t i = 0; entry && shared[i]; i++)
		if (json_object_get(record, shared[i]))
			add_key(&flat, shared[i], json_object_get(record, shared[i]));
	if (entry) {
		json_object_set(flat.values, "merged", json_object_get(record, "merged"));
		json_object_set(flat.values, "cpus_missing", json_object_get(record, "cpus_missing"));
	}
	if (rest)
		add_key(&flat, "rest", json_true());
	add_members(&flat, stream, entry ? entry : record, sum);
	add_total(stream, &flat);
	return end(stream, &flat);
}

/* What is missing: no value, which sums would have in them. */
static int write_lost(struct stream *stream, const json_t *record, const char *cause, json_int_t nr)
{
	struct flat flat = begin(stream, record);

	json_object_set(flat.line, "event", json_object_get(record, "event"));
	json_object_set_new(flat.line, "lost", json_string(cause));
	json_object_set_new(flat.line, "missed", json_integer(nr));
	return end(stream, &flat);
}

static int write_losses(struct stream *stream, const json_t *record)
{
	const json_t *lost = json_object_get(json_object_get(record, "samples"), "lost");
	const char *cause;
	json_t *count;
	int err = 0;

	if (!strcmp(string(record, "type"), "gap"))
		return write_lost(stream, record, string(record, "cause"), integer(record, "records"));
	json_object_foreach((json_t *)lost, cause, count) if (json_integer_value(count) && !err) err =
		write_lost(stream, record, cause, json_integer_value(count));
	return err;
}

static int write_flat(struct stream *stream, const json_t *record)
{
	const struct flattened *kind = NULL;
	const json_t *rest = json_object_get(record, "rest");
	json_t *entry;
	int err = 0;
	size_t i;

	for (i = 0; i < FLATTENED && !kind; i++)
		if (!strcmp(flattened[i].type, string(record, "type")))
			kind = &flattened[i];
	if (kind && !kind->list)
		return write_entry(stream, record, NULL, kind->value, false);
	if (kind)
		json_array_foreach(json_object_get(record, kind->list), i, entry) if (!err) err =
			write_entry(stream, record, entry, kind->value, false);
	if (kind && rest && !err)
		err = write_entry(stream, record, rest, kind->value, true);
	return err ? err : write_losses(stream, record);
}

static const struct format flat = {
	.name = "flat",
	.help = "an entry or a count a line, nothing nested: rows for a database",
	.measured = true,
	.numbered = true,
	.write = write_flat,
};
REGISTER_FORMAT(flat);
