// SPDX-License-Identifier: GPL-2.0-only
#include "output/flatten.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "output/calls.h"
#include "output/member.h"
#include "output/text.h"
#include "record/record.h"
#include "record/rows.h"

/* How a type of record is turned into rows. */
struct flattened {
	const char *type;
	const char *list; /* member with the entries; NULL: the record itself is the row */
	/* Member of an entry that can be summed up. For samples it is what they stand for, and `otherwise` in
	 * records of versions that had no such member. */
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
	int (*take_text)(void *context, const struct row_text *row); /* NULL: rows are never text */
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
	size_t length;

	if (alone && (!strcmp(member, "symbol") || !strcmp(member, "module")))
		return member;
	length = strnlen(alone ? "code" : name, CODE_MEMBER_ROOM / 2);
	memcpy(buffer, alone ? "code" : name, length);
	buffer[length++] = '_';
	*(char *)mempcpy(buffer + length, member, strnlen(member, CODE_MEMBER_ROOM - 1 - length)) = '\0';
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

/* Keys and values of a record that are those of each of its entries. */
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
				     "systemd.unit"};
static const char *const shared_values[] = {"merged", "cpus_missing"};

static int take_entry(const struct flattening *flattening, const json_t *entry, bool rest)
{
	const json_t *record = flattening->record;
	struct row row = {.keys = json_object(), .values = json_object(), .from = entry ? entry : record};
	int err;

	for (size_t i = 0; entry && i < ARRAY_SIZE(shared); i++)
		json_object_set(row.keys, shared[i], json_object_get(record, shared[i]));
	for (size_t i = 0; entry && i < ARRAY_SIZE(shared_values); i++)
		json_object_set(row.values, shared_values[i], json_object_get(record, shared_values[i]));
	if (rest)
		json_object_set_new(row.keys, "rest", json_true());
	add_members(&row, flattening, row.from);
	err = flattening->take(flattening->context, &row);
	json_decref(row.keys);
	json_decref(row.values);
	return err;
}

static int take_element(const struct flattening *flattening, const char *text)
{
	json_t *entry = rows_element(text);
	int err = take_entry(flattening, entry, false);

	json_decref(entry);
	return err;
}

/* The elements of a list that is text become objects one at a time. */
static int take_elements(const struct flattening *flattening, const struct rows_text *entries)
{
	const char *at = entries->text;
	int err = 0;

	for (size_t i = 0; i < entries->nr && !err; at += entries->sizes[i++] + 1)
		err = take_element(flattening, at);
	return err;
}

/* --- rows of text ----------------------------------------------------------------------------- */

#define MEMBERS_MOST 32

/* What becomes of a member of an entry. */
enum destination { TO_KEYS, TO_VALUES, TO_NOTHING, UNFIT };

struct text_rows {
	const struct flattening *flattening;
	struct row_text row;
	size_t keys_shared, series_shared, values_shared; /* bytes of the row that all entries have */
	/* Those of the entry before, since an entry mostly has members of the same names. */
	struct known_member {
		char name[CODE_MEMBER_ROOM];
		size_t length;
		enum destination destination;
	} known[MEMBERS_MOST];
};

static void add_shared(struct text_rows *rows)
{
	const json_t *record = rows->flattening->record, *value;
	struct row_text *row = &rows->row;

	for (size_t i = 0; i < ARRAY_SIZE(shared); i++)
		if ((value = json_object_get(record, shared[i]))) {
			compact_add_member(&row->keys, ',', shared[i], value);
			series_add(&row->series, shared[i], value);
		}
	for (size_t i = 0; i < ARRAY_SIZE(shared_values); i++)
		if ((value = json_object_get(record, shared_values[i])))
			compact_add_member(&row->values, ',', shared_values[i], value);
	rows->keys_shared = row->keys.used;
	rows->series_shared = row->series.used;
	rows->values_shared = row->values.used;
}

static bool is_one_of(const char *name, const char *const *names, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* A stack is made text by its frames. What a row has already, or has of a code, it must not get twice. */
static enum destination find_destination(const struct flattening *flattening, const char *name)
{
	static const char *const left_out[] = {"type", "start_time", "duration_ns", "sample_time"};
	static const char *const unfit[] = {"stack", "symbol", "module", "container.id"};

	if (is_one_of(name, left_out, ARRAY_SIZE(left_out)))
		return TO_NOTHING;
	if (is_one_of(name, unfit, ARRAY_SIZE(unfit)) ||
	    (json_object_get(flattening->record, name) &&
	     (is_one_of(name, shared, ARRAY_SIZE(shared)) ||
	      is_one_of(name, shared_values, ARRAY_SIZE(shared_values)))))
		return UNFIT;
	return is_measured(name) ? TO_VALUES : TO_KEYS;
}

static bool is_named(const struct rows_member *member, const char *name, size_t length)
{
	return member->name_length == length && !memcmp(member->name, name, length);
}

static enum destination destination_of(struct text_rows *rows, size_t i, const struct rows_member *member)
{
	struct known_member *known = &rows->known[i];

	if (known->length && is_named(member, known->name, known->length))
		return known->destination;
	if (member->name_length >= sizeof(known->name))
		return UNFIT;
	known->length = member->name_length;
	*(char *)mempcpy(known->name, member->name, known->length) = '\0';
	known->destination = find_destination(rows->flattening, known->name);
	return known->destination;
}

static void add_series(struct compact *series, const char *name, size_t length,
		       const struct rows_member *member)
{
	compact_add(series, name, length);
	compact_add(series, "=", 1);
	compact_add(series, member->value, member->value_length);
}

/* Adds a member with its name, as it is. */
static void add_as_it_is(struct compact *text, const struct rows_member *member)
{
	compact_add(text, ",", 1);
	compact_add(text, member->name - 1, member->value + member->value_length - (member->name - 1));
}

static bool is_nested(const struct rows_member *member)
{
	return *member->value == '{' || *member->value == '[';
}

static bool is_code(const char *object)
{
	struct rows_member member;

	for (const char *at = object; *at != '}';) {
		at = rows_member(at, &member);
		if (!at)
			return false;
		if (is_named(&member, "module", strlen("module")) ||
		    is_named(&member, "address", strlen("address")))
			return true;
	}
	return false;
}

static bool add_code_text(struct row_text *row, const struct rows_member *code)
{
	char name[CODE_MEMBER_ROOM], member_name[CODE_MEMBER_ROOM], full[CODE_MEMBER_ROOM];
	struct rows_member member;

	if (code->name_length >= sizeof(name))
		return false;
	*(char *)mempcpy(name, code->name, code->name_length) = '\0';
	for (const char *at = code->value; *at != '}';) {
		const char *flat;

		at = rows_member(at, &member);
		if (is_nested(&member))
			continue;
		if (member.name_length >= sizeof(member_name))
			return false;
		*(char *)mempcpy(member_name, member.name, member.name_length) = '\0';
		flat = flatten_code_member(name, member_name, full);
		compact_add(&row->keys, ",\"", 2);
		compact_add_text(&row->keys, flat);
		compact_add(&row->keys, "\":", 2);
		compact_add(&row->keys, member.value, member.value_length);
		add_series(&row->series, flat, strlen(flat), &member);
	}
	return true;
}

/* Reads the members of an entry. Returns their number, or -1 if they are too many. */
static int read_members(const char *entry, struct rows_member list[MEMBERS_MOST])
{
	int nr = 0;

	for (const char *at = entry; *at != '}'; nr++)
		if (nr == MEMBERS_MOST || !(at = rows_member(at, &list[nr])))
			return -1;
	return nr;
}

static bool has_member(const struct rows_member *list, int nr, const char *name)
{
	for (int i = 0; i < nr; i++)
		if (is_named(&list[i], name, strlen(name)))
			return true;
	return false;
}

/* Makes the row of an entry. Returns false if it takes more than to put the members in another order. */
static bool make_text(struct text_rows *rows, const char *entry)
{
	const struct flattened *kind = rows->flattening->kind;
	struct rows_member list[MEMBERS_MOST];
	struct row_text *row = &rows->row;
	int nr = read_members(entry, list);
	const char *sum =
		kind->otherwise && !has_member(list, nr, kind->value) ? kind->otherwise : kind->value;
	size_t sum_length = strlen(sum);

	row->keys.used = rows->keys_shared;
	row->series.used = rows->series_shared;
	row->values.used = rows->values_shared;
	row->value = NULL;
	for (int i = 0; i < nr; i++) {
		const struct rows_member *member = &list[i];
		enum destination destination;

		if (is_named(member, sum, sum_length)) {
			row->value = member->value;
			row->value_length = member->value_length;
			continue;
		}
		destination = destination_of(rows, i, member);
		if (destination == UNFIT)
			return false;
		if (destination == TO_NOTHING || *member->value == '[')
			continue;
		if (*member->value == '{') {
			if (is_code(member->value) && !add_code_text(row, member))
				return false;
		} else if (destination == TO_VALUES) {
			add_as_it_is(&row->values, member);
		} else {
			add_as_it_is(&row->keys, member);
			add_series(&row->series, member->name, member->name_length, member);
		}
	}
	return nr >= 0;
}

static int take_text_entry(struct text_rows *rows, const char *text)
{
	const struct flattening *flattening = rows->flattening;

	if (make_text(rows, text))
		return flattening->take_text(flattening->context, &rows->row);
	return take_element(flattening, text);
}

static int take_text_entries(const struct flattening *flattening, const struct rows_text *entries)
{
	struct text_rows rows = {.flattening = flattening};
	const char *at = entries->text;
	int err = 0;

	add_shared(&rows);
	for (size_t i = 0; i < entries->nr && !err; at += entries->sizes[i++] + 1)
		err = take_text_entry(&rows, at);
	free(rows.row.keys.text);
	free(rows.row.series.text);
	free(rows.row.values.text);
	return err;
}

/* --- all rows of a record ---------------------------------------------------------------------- */

static int take_list(const struct flattening *flattening, const json_t *list)
{
	struct rows_text rows;
	json_t *entry;
	int err = 0;
	size_t i;

	if (rows_text(list, &rows))
		return flattening->take_text ? take_text_entries(flattening, &rows)
					     : take_elements(flattening, &rows);
	json_array_foreach((json_t *)list, i, entry)
		if (!err)
			err = take_entry(flattening, entry, false);
	return err;
}

static int flatten_all(struct flattening *flattening)
{
	static const char *const rests[] = {"rest", "rest_of_ranges"};
	const json_t *record = flattening->record;
	int err;

	for (size_t i = 0; i < FLATTENED && !flattening->kind; i++)
		if (!strcmp(flattened[i].type, string(record, "type")))
			flattening->kind = &flattened[i];
	if (!flattening->kind)
		return 0;
	if (!flattening->kind->list)
		return take_entry(flattening, NULL, false);
	err = take_list(flattening, json_object_get(record, flattening->kind->list));
	for (size_t i = 0; i < ARRAY_SIZE(rests); i++)
		if (!err && json_object_get(record, rests[i]))
			err = take_entry(flattening, json_object_get(record, rests[i]), true);
	return err;
}

int flatten(const json_t *record, const struct calls *calls, bool stacks,
	    int (*take)(void *context, const struct row *row), void *context)
{
	struct flattening flattening = {record, calls, stacks, NULL, NULL, take, context};

	return flatten_all(&flattening);
}

int flatten_texts(const json_t *record, const struct calls *calls,
		  int (*take_text)(void *context, const struct row_text *row),
		  int (*take)(void *context, const struct row *row), void *context)
{
	struct flattening flattening = {record, calls, true, NULL, take_text, take, context};

	return flatten_all(&flattening);
}

void series_add(struct compact *series, const char *name, const json_t *value)
{
	compact_add_text(series, name);
	compact_add(series, "=", 1);
	compact_add_value(series, value);
}

/* --- what is lost ----------------------------------------------------------------------------- */

static int take_missing(struct row *row, const json_t *record,
			int (*take)(void *context, const struct row *row), void *context)
{
	int err;

	json_object_set(row->keys, "event", json_object_get(record, "event"));
	json_object_set(row->keys, "nth", json_object_get(record, "nth"));
	err = take(context, row);
	json_decref(row->keys);
	json_decref(row->values);
	return err;
}

static int take_lost(const json_t *record, const char *cause, json_int_t missed,
		     int (*take)(void *context, const struct row *row), void *context)
{
	struct row row = {.keys = json_object(), .values = json_object(), .from = record};

	json_object_set_new(row.keys, "lost", json_string(cause));
	json_object_set_new(row.values, "missed", json_integer(missed));
	json_object_set(row.values, "missing", json_object_get(record, "missing"));
	return take_missing(&row, record, take, context);
}

/* The row of a sampled event that never got a counter, with what the row of a counted one has. */
static int take_uncounted(const json_t *record, int (*take)(void *context, const struct row *row),
			  void *context)
{
	static const char *const members[] = {"why", "status", "enabled_ns", "running_ns"};
	struct row row = {.keys = json_object(), .values = json_object(), .from = record};

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		json_object_set(row.values, members[i], json_object_get(record, members[i]));
	return take_missing(&row, record, take, context);
}

int flatten_losses(const json_t *record, int (*take)(void *context, const struct row *row), void *context)
{
	const json_t *samples = json_object_get(record, "samples"), *lost = json_object_get(samples, "lost");
	const char *cause;
	json_t *count;
	int err = 0;

	if (!strcmp(string(record, "type"), "gap"))
		return take_lost(record, string(record, "cause"), integer(record, "records"), take, context);
	if (samples && integer(record, "enabled_ns") && !integer(record, "running_ns"))
		err = take_uncounted(record, take, context);
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
		time.at = timespec_of(start ? start + length : taken);
	else
		clock_gettime(CLOCK_REALTIME, &time.at);
	return time;
}
