// SPDX-License-Identifier: GPL-2.0-only
#include "output/flatten.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "output/calls.h"
#include "output/member.h"
#include "output/text.h"
#include "record/record.h"

/* How a type of record is turned into rows. */
struct flattened {
	const char *type;
	const char *list; /* member with the entries; NULL: the record itself is the row */
	/* Member of an entry that can be summed up. For samples it is what they stand for. An entry of a
	 * trace has no period, since it has all branches: then it is `otherwise`. */
	const char *value, *otherwise;
};

/* Of a sample, nothing is summed up: its period is part of its event's value. */
#define NO_VALUE ""

static const struct flattened flattened[] = {
	{"count", NULL, "value", NULL},		 {"metric", NULL, "value", NULL},
	{"offcore", "cells", "value", NULL},	 {"profile", "entries", "period", "samples"},
	{"mem", "entries", "period", "samples"}, {"branch", "entries", "period", "count"},
	{"analysis", "shares", "share", NULL},	 {"stream", NULL, "value", NULL},
	{"sample", NULL, NO_VALUE, NULL},
};
#define FLATTENED ARRAY_SIZE(flattened)

struct flattening {
	const json_t *record;
	const struct calls *calls;
	bool stacks;
	const struct flattened *kind;
	int (*take)(void *context, const struct row *row);
	void *context;
};

/* --- members ---------------------------------------------------------------------------------- */

/* Members that are measured values, and so not part of a series' key. */
static bool is_measured(const char *name)
{
	static const char *const names[] = {
		"value",       "samples",	"count",	 "mispredicted_period",
		"period",      "mispredicted",	"latency_sum",	 "latency_sum_period",
		"latency_max", "enabled_ns",	"running_ns",	 "scaled",
		"bytes",       "value_in_unit", "running_share", "status",
		"why",	       "merged",	"cpus_missing",	 "together",
		"truncated",   "entries",	"repeat",	 "description",
		"formula",     "unit",		"part",		 "parts",
		"no_samples",  "no_entries",	"low",		 "high",
		"serial",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

const char *flatten_code_member(const char *name, const char *member, char *buffer)
{
	bool alone = !strcmp(name, "code") || !strcmp(name, "ip");

	if (alone && (!strcmp(member, "symbol") || !strcmp(member, "module")))
		return member;
	snprintf(buffer, CODE_MEMBER_ROOM, "%s_%s", alone ? "code" : name, member);
	return buffer;
}

static void add_code(struct row *row, const char *name, const json_t *code)
{
	char full[CODE_MEMBER_ROOM];
	const char *member;
	json_t *value;

	json_object_foreach((json_t *)code, member, value)
		if (!json_is_array(value) && !json_is_object(value))
			json_object_set(row->keys, flatten_code_member(name, member, full), value);
}

/* The frame that an element of a stack stands for: a sample has frames, an entry their ids. */
static const json_t *frame_at(const struct calls *calls, const json_t *stack, size_t i)
{
	const json_t *element = json_array_get(stack, i);

	return json_is_object(element) ? element : calls_frame(calls, json_integer_value(element));
}

/* Takes the innermost function of the stack as the code of the entry. */
static void add_innermost(struct row *row, const struct calls *calls, const json_t *stack)
{
	const json_t *frame = frame_at(calls, stack, 0);
	struct call at = calls_at(frame, 0);

	if (!json_array_size(stack) || !frame)
		return;
	if (at.symbol)
		json_object_set_new(row->keys, "symbol", json_string(at.symbol));
	json_object_set(row->keys, "module", json_object_get(frame, "module"));
}

/* Adds the stack as text from the outermost function to the innermost, as in folded stacks. */
static void add_stack(struct row *row, const struct calls *calls, const json_t *stack)
{
	struct text text = {0};
	json_t *value;

	for (size_t i = json_array_size(stack); i--;) {
		const json_t *frame = frame_at(calls, stack, i);
		char name[CALLS_NAME_MAX];

		for (size_t call = calls_in(frame); call--;) {
			struct call at = calls_at(frame, call);

			calls_fold(&text, calls_name(&at, name, sizeof(name)), "");
		}
	}
	value = text.used ? value_text(text.bytes, text.used) : json_string("");
	json_object_set_new(row->keys, "stack", value);
	free(text.bytes);
}

static void add_members(struct row *row, const struct flattening *flattening, const json_t *from)
{
	const struct flattened *kind = flattening->kind;
	bool otherwise = kind->otherwise && !json_object_get(from, kind->value);
	const char *sum = otherwise ? kind->otherwise : kind->value, *name;
	json_t *value;

	json_object_foreach((json_t *)from, name, value) {
		if (!strcmp(name, "type") || !strcmp(name, "start_time") || !strcmp(name, "duration_ns") ||
		    !strcmp(name, "sample_time"))
			continue;
		if (!strcmp(name, sum)) {
			row->value = value;
		} else if (!strcmp(name, "stack")) {
			add_innermost(row, flattening->calls, value);
			if (flattening->stacks)
				add_stack(row, flattening->calls, value);
		} else if (json_is_object(value) &&
			   (json_object_get(value, "module") || json_object_get(value, "address"))) {
			add_code(row, name, value);
		} else if (!json_is_object(value) && !json_is_array(value)) {
			json_object_set(is_measured(name) ? row->values : row->keys, name, value);
		}
	}
}

/* --- rows ------------------------------------------------------------------------------------- */

static int take_entry(const struct flattening *flattening, const json_t *entry, bool rest)
{
	static const char *const shared[] = {"event",
					     "nth",
					     "cpu",
					     "node",
					     "socket",
					     "core",
					     "tid",
					     "comm",
					     "cgroup",
					     "container.id",
					     "container.runtime",
					     "k8s.pod.uid",
					     "systemd.unit",
					     NULL};
	const json_t *record = flattening->record;
	struct row row = {.keys = json_object(), .values = json_object(), .from = entry ? entry : record};
	int err;

	for (size_t i = 0; entry && shared[i]; i++)
		json_object_set(row.keys, shared[i], json_object_get(record, shared[i]));
	if (entry) {
		json_object_set(row.values, "merged", json_object_get(record, "merged"));
		json_object_set(row.values, "cpus_missing", json_object_get(record, "cpus_missing"));
	}
	if (rest)
		json_object_set_new(row.keys, "rest", json_true());
	add_members(&row, flattening, row.from);
	err = flattening->take(flattening->context, &row);
	json_decref(row.keys);
	json_decref(row.values);
	return err;
}

int flatten(const json_t *record, const struct calls *calls, bool stacks,
	    int (*take)(void *context, const struct row *row), void *context)
{
	struct flattening flattening = {record, calls, stacks, NULL, take, context};
	static const char *const rests[] = {"rest", "rest_of_ranges"};
	const struct flattened *kind = NULL;
	json_t *entry;
	int err = 0;
	size_t i;

	for (i = 0; i < FLATTENED && !kind; i++)
		if (!strcmp(flattened[i].type, string(record, "type")))
			kind = &flattened[i];
	if (!kind)
		return 0;
	flattening.kind = kind;
	if (!kind->list)
		return take_entry(&flattening, NULL, false);
	json_array_foreach(json_object_get(record, kind->list), i, entry)
		if (!err)
			err = take_entry(&flattening, entry, false);
	for (i = 0; i < ARRAY_SIZE(rests); i++)
		if (!err && json_object_get(record, rests[i]))
			err = take_entry(&flattening, json_object_get(record, rests[i]), true);
	return err;
}

/* --- what is lost ----------------------------------------------------------------------------- */

static int take_lost(const json_t *record, const char *cause, json_int_t missed,
		     int (*take)(void *context, const struct row *row), void *context)
{
	struct row row = {.keys = json_object(), .values = json_object(), .from = record};
	int err;

	json_object_set(row.keys, "event", json_object_get(record, "event"));
	json_object_set(row.keys, "nth", json_object_get(record, "nth"));
	json_object_set_new(row.keys, "lost", json_string(cause));
	json_object_set_new(row.values, "missed", json_integer(missed));
	json_object_set(row.values, "missing", json_object_get(record, "missing"));
	err = take(context, &row);
	json_decref(row.keys);
	json_decref(row.values);
	return err;
}

int flatten_losses(const json_t *record, int (*take)(void *context, const struct row *row), void *context)
{
	const json_t *lost = json_object_get(json_object_get(record, "samples"), "lost");
	const char *cause;
	json_t *count;
	int err = 0;

	if (!strcmp(string(record, "type"), "gap"))
		return take_lost(record, string(record, "cause"), integer(record, "records"), take, context);
	json_object_foreach((json_t *)lost, cause, count) {
		if (json_integer_value(count) && !err)
			err = take_lost(record, cause, json_integer_value(count), take, context);
	}
	return err;
}

void flatten_run(struct flattened_run *run, json_t *start)
{
	const json_t *resource;

	if (run->start == start)
		return;
	resource = json_object_get(start, "resource");
	json_decref(run->start);
	run->start = json_incref(start);
	run->host = json_object_get(resource, "host.name");
	run->model = json_object_get(resource, "host.emulated.model");
	run->container = json_object_get(resource, "container.id");
}

struct flattened_time flatten_time(const json_t *record)
{
	__u64 length = integer(record, "duration_ns"), start = moment(record, "start_time"),
	      taken = moment(record, "sample_time");
	struct flattened_time time = {.interval = start, .interval_ms = length / 1e6};

	if (start || taken)
		time.at = moment_time(start ? start + length : taken);
	else
		clock_gettime(CLOCK_REALTIME, &time.at);
	return time;
}
