// SPDX-License-Identifier: GPL-2.0-only
#include "output/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/alternatives.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/unique.h"
#include "base/visible.h"
#include "option/command.h"
#include "output/address.h"
#include "output/calls.h"
#include "output/documents.h"
#include "output/member.h"
#include "output/push.h"
#include "output/scribe_server.h"
#include "record/record.h"
#include "record/rows.h"
#include "record/shorter.h"
#include "record/type.h"

/* --- formats ---------------------------------------------------------------------------------- */

/* The linker defines these symbols: the section's name is a C identifier. */
extern const struct format *const __start_formats[], *const __stop_formats[];

/* The order of formats in --help: first those that all commands have, then those that all measuring commands
 * have, then the rest. */
static int rank_of(const struct format *format)
{
	return format->commands ? 2 : format->measured ? 1 : 0;
}

const struct format *format_at(size_t wanted)
{
	size_t nr = __stop_formats - __start_formats, seen = 0;

	for (int rank = 0; rank <= 2; rank++)
		for (size_t i = 0; i < nr; i++)
			if (rank_of(__start_formats[i]) == rank && seen++ == wanted)
				return __start_formats[i];
	return NULL;
}

bool format_is_of(const struct format *format, const char *command)
{
	if (format->measured && command && !command_find(command)->activity)
		return false;
	return !command || !format->commands || list_has(format->commands, command);
}

const struct format *format_find(const char *name, const char *command, struct refusal *refusal)
{
	const struct format *format, *other = NULL;
	struct alternatives alternatives;
	char commands[80] = "";

	alternatives_begin(&alternatives, name, strlen(name));
	for (size_t i = 0; (format = format_at(i)); i++) {
		bool named = !strcmp(format->name, name), fits = format_is_of(format, command);

		if (named && fits)
			return format;
		if (named)
			other = format;
		if (fits)
			alternatives_offer(&alternatives, format->name);
	}
	refuse(refusal, STATUS_USAGE, "option --format '%s'", name);
	if (!other) {
		because(refusal, "there is no such format");
	} else {
		list_append_all(commands, sizeof(commands), other->commands ?: "commands that measure");
		because(refusal, "it is for %s, not for %s", commands, command);
	}
	alternatives_end(&alternatives, refusal, "formats: %s", alternatives.all);
	return NULL;
}

void formats_help(const char *command, FILE *out)
{
	const struct format *format;

	for (size_t i = 0; (format = format_at(i)); i++)
		if (format_is_of(format, command))
			fprintf(out, "    %-22s %s\n", format->name, format->help);
}

/* --- streams ---------------------------------------------------------------------------------- */

/* Opens a stream that has no sink: its format makes the page for /metrics when a client asks for it. */
static int open_listening(struct stream *stream, struct refusal *refusal)
{
	stream->sink = (struct sink){.fd = -1, .path = LISTEN, .begun = true};
	stream->scraped = true;
	if (stream->format && stream->format->page)
		return 0;
	refuse(refusal, STATUS_USAGE, "option --output '" LISTEN "'");
	because(refusal, "%s makes no page that could be read there",
		stream->format ? stream->format->name : "json");
	return instead(refusal, "write openmetrics=" LISTEN ", or ./" LISTEN " for a file of this name");
}

/* What a format's documents are; NULL: of records. */
static struct document_kind kind_of(const struct format *format)
{
	return format ? (struct document_kind){format->name, format->media, format->halve}
		      : (struct document_kind){.format = "json"};
}

bool stream_has_documents(const struct stream *stream)
{
	const struct place_of_output *place = &stream->place;
	bool replaces = stream->format && stream->format->replaces;

	if (!place->queue_bytes || !place->path || !strcmp(place->path, LISTEN) || address_is(place->path))
		return false;
	return address_is_url(place->path) || replaces || documents_is_pattern(place->path);
}

/* Opens the place of a stream. Only streams of a session (queue_bytes is not 0) reconnect, replace files and
 * write documents, since only a session has intervals and an event loop. */
static int open_place(struct stream *stream, const struct place_of_output *place, struct refusal *refusal)
{
	bool session = place->queue_bytes;

	if (session && place->path && !strcmp(place->path, LISTEN))
		return open_listening(stream, refusal);
	if (session && address_is(place->path))
		return sink_open_address(&stream->sink, place->path, refusal);
	if (session && address_is_url(place->path))
		return sink_open_push(&stream->sink, place->path, kind_of(stream->format), &place->access,
				      refusal);
	if (stream_has_documents(stream))
		return sink_open_documents(&stream->sink, place->path, scribe_serve, refusal);
	return sink_open(&stream->sink, place->path, place->append, session, scribe_serve, refusal);
}

static bool is_same_text(const char *one, const char *other)
{
	return one && other ? !strcmp(one, other) : one == other;
}

/* json_equal() is false for two NULLs. */
static bool is_same_list(const json_t *one, const json_t *other)
{
	return one == other || json_equal(one, other);
}

bool place_is_same(const struct place_of_output *one, const struct place_of_output *other)
{
	return is_same_text(one->path, other->path) && is_same_text(one->format, other->format) &&
	       one->append == other->append && one->queue_bytes == other->queue_bytes &&
	       one->series == other->series && one->cumulative == other->cumulative &&
	       access_is_same(&one->access, &other->access) &&
	       is_same_list(one->activities, other->activities) && is_same_list(one->types, other->types);
}

/* The format of an output that names none. */
static const char *usual_format(bool terminal)
{
	return terminal ? "table" : "json";
}

/* Whether two lists of names have a name in common. NULL has all names. */
static bool has_common_name(const json_t *one, const json_t *other)
{
	json_t *name;
	size_t i;

	if (!one || !other)
		return true;
	json_array_foreach(one, i, name)
		if (has_text(other, json_string_value(name)))
			return true;
	return false;
}

static const char *format_name(const struct place_of_output *place, bool terminal)
{
	return place->format ? place->format : usual_format(terminal);
}

bool place_has_records_of(const struct place_of_output *one, const struct place_of_output *other)
{
	bool terminal = !one->path && isatty(STDOUT_FILENO);

	return is_same_text(one->path, other->path) &&
	       !strcmp(format_name(one, terminal), format_name(other, terminal)) &&
	       has_common_name(one->activities, other->activities) &&
	       has_common_name(one->types, other->types);
}

bool stream_is_at(const struct stream *stream, const struct place_of_output *place)
{
	return is_same_text(stream->place.path, place->path) &&
	       !strcmp(stream->format->name, format_name(place, stream->sink.terminal));
}

static void release_state(struct stream *stream)
{
	if (stream->format && stream->format->release)
		stream->format->release(stream);
	stream->own = NULL;
}

void stream_replace(struct stream *stream, const struct place_of_output *place)
{
	if (stream->place.series != place->series || stream->place.cumulative != place->cumulative)
		release_state(stream);
	json_decref(stream->place.document);
	stream->place = *place;
	json_incref(stream->place.document);
	stream->activities = place->activities;
	stream->types = place->types;
	stream->series = place->series;
	stream->sink.most = place->queue_bytes;
	stream->aside = stream->ending = false;
	stream->leaving = (struct leaving){0};
}

void stream_succeed(struct stream *stream, struct stream *ended)
{
	const struct place_of_output *place = &stream->place, *before = &ended->place;

	if (stream->format != ended->format || place->series != before->series ||
	    place->cumulative != before->cumulative || !is_same_list(place->activities, before->activities) ||
	    !is_same_list(place->types, before->types) || stream->own ||
	    stream->format->people) /* what is shown in one place is not shown in another */
		return;
	stream->own = ended->own;
	ended->own = NULL;
}

/* Refuses what open_place() would, as far as the place alone tells; nothing is opened. */
static int check_place(struct stream *stream, struct refusal *refusal)
{
	const char *path = stream->place.path;

	stream->sink = (struct sink){.fd = -1, .path = path};
	if (path && !strcmp(path, LISTEN))
		return open_listening(stream, refusal);
	if (address_is(path))
		return address_read(NULL, "option --output", path, refusal);
	if (address_is_url(path))
		return pusher.check(path, kind_of(stream->format), refusal);
	return sink_check_path(path, stream_has_documents(stream), refusal);
}

static struct stream made_for(const struct place_of_output *place)
{
	json_incref(place->document); /* once for `place`, once for `home` */
	return (struct stream){
		.activities = place->activities,
		.types = place->types,
		.series = place->series,
		.place = *place,
		.home = json_incref(place->document),
	};
}

static int find_format(struct stream *stream, const char *command, struct refusal *refusal)
{
	const char *name = stream->place.format;

	stream->format = name ? format_find(name, command, refusal) : NULL;
	return name && !stream->format ? -1 : 0;
}

int stream_foresee(struct stream *stream, const struct place_of_output *place, struct refusal *refusal)
{
	*stream = made_for(place);
	stream->aside = stream->foreseen = true;
	if (find_format(stream, NULL, refusal) || check_place(stream, refusal)) {
		stream_release(stream);
		return -1;
	}
	if (!stream->format)
		stream->format = format_find("json", NULL, refusal);
	return 0;
}

int stream_open(struct stream *stream, const struct place_of_output *place, const char *command,
		struct refusal *refusal)
{
	unsigned char id[UNIQUE_BYTES];

	*stream = made_for(place);
	clock_gettime(CLOCK_REALTIME, &stream->since);
	if (find_format(stream, command, refusal) || open_place(stream, place, refusal)) {
		stream_release(stream);
		return -1;
	}
	stream->sink.most = place->queue_bytes;
	if (!stream->format)
		stream->format = format_find(usual_format(stream->sink.terminal), command, refusal);
	stream->sink.rows = stream->format->rows;
	if (stream->format->bytes)
		sink_take_bytes(&stream->sink);
	unique_id(id);
	hex_text(stream->run_id, id, sizeof(id));
	return 0;
}

int stream_open_options(struct stream *stream, const struct options *options, struct refusal *refusal)
{
	struct place_of_output place = {.path = options->output, .format = options->format};
	int err = stream_open(stream, &place, options->command->name, refusal);

	stream->verbose = options->verbose;
	return err;
}

/* Adds the members that come first in every record. */
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
	if (stream->activity)
		json_object_set_new(whole, "activity", json_string(stream->activity));
	json_object_update_missing(whole, (json_t *)record);
	return whole;
}

static int output(struct stream *stream, const json_t *record)
{
	json_t *whole, *part = NULL;
	int err;

	/* For formats that write JSON lines the envelope is written as text: adding it to the JSON tree would
	 * be a large part of the cost of an interval. */
	if (stream->format->lines || stream->format->numbered)
		return stream->format->write(stream, record);
	whole = with_envelope(stream, record);
	if (stream->format->adds_up)
		part = calls_part(whole, false) ?: calls_part(whole, true);
	err = stream->format->write(stream, part ? part : whole);
	json_decref(part);
	json_decref(whole);
	return err;
}

static void add_shorter(struct compact *text, const json_t *element)
{
	json_t *shorter = value_shorter(element, ELEMENT_MAX);

	compact_add_value(text, shorter);
	json_decref(shorter);
}

/* The same of a list that is text already, unless an element is too long. */
static bool sizes_of_rows(const json_t *list, struct sizes *sizes, struct compact *text)
{
	struct rows_text rows;

	if (!rows_text(list, &rows))
		return false;
	for (size_t i = 0; i < rows.nr; i++)
		if (rows.sizes[i] > ELEMENT_MAX)
			return false;
	sizes->total = rows.nr;
	sizes->bytes = xmalloc(rows.nr * sizeof(*rows.sizes));
	memcpy(sizes->bytes, rows.sizes, rows.nr * sizeof(*rows.sizes));
	compact_add(text, rows.text, rows.size);
	return true;
}

struct sizes sizes_of(const json_t *list, struct compact *text)
{
	struct sizes sizes = {.total = json_array_size(list)};

	sizes.bytes = xcalloc(sizes.total + 1, sizeof(*sizes.bytes));
	for (size_t i = 0; i < sizes.total; i++) {
		size_t before;

		if (i)
			compact_add(text, ",", 1);
		before = text->used;
		compact_add_value(text, json_array_get(list, i));
		if (text->used - before > ELEMENT_MAX) {
			text->used = before;
			add_shorter(text, json_array_get(list, i));
		}
		sizes.bytes[i] = text->used - before;
	}
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

/* The record without the elements of its list. A part other than the first has only the members that every
 * part keeps. */
static json_t *frame_of(const json_t *record, const struct record_type *type, bool first)
{
	bool whole = first || !type->kept[0];
	json_t *frame = whole ? json_copy((json_t *)record) : json_object();

	if (!whole)
		json_object_set(frame, "type", json_object_get(record, "type"));
	for (const char *const *kept = type->kept; !whole && *kept; kept++)
		json_object_set(frame, *kept, json_object_get(record, *kept));
	json_object_set_new(frame, type->list, json_array());
	return frame;
}

/* The most bytes that the envelope, `part` and `parts` take. */
#define ENVELOPE_MAX 300

/* The number of bytes of a record without the elements of its list. */
static size_t bytes_beside(const json_t *record, const char *list)
{
	struct compact text = {0};
	const char *member;
	json_t *value;

	json_object_foreach((json_t *)record, member, value)
		if (strcmp(member, list))
			compact_add_member(&text, ',', member, value);
	free(text.text);
	return text.used + strlen("{\"\":[]}") + strlen(list);
}

/* Writes a record with these elements in its list. They are given as JSON text, because the text is made
 * once: to measure it, and for all parts. */
static int put_with(struct stream *stream, const json_t *record, const char *list, const char *text,
		    size_t size)
{
	int err;

	stream->elements = (struct elements){json_object_get(record, list), text, size};
	err = output(stream, record);
	stream->elements = (struct elements){0};
	return err;
}

static struct sizes sizes_of_member(json_t *record, const char *list, struct compact *text)
{
	struct sizes sizes;

	if (sizes_of_rows(json_object_get(record, list), &sizes, text))
		return sizes;
	rows_open(record, list);
	return sizes_of(json_object_get(record, list), text);
}

/* Writes the record in one piece if it fits into RECORD_MAX, otherwise in parts. */
static int write_parts(struct stream *stream, json_t *record, const struct record_type *type)
{
	struct compact text = {0};
	struct sizes sizes = sizes_of_member(record, type->list, &text);
	size_t part = 0, parts = 0, base = bytes_beside(record, type->list) + ENVELOPE_MAX, at = 0;
	int err = 0;

	for (size_t first = 0; first < sizes.total; first += sizes_fitting(&sizes, first, base))
		parts++;
	if (parts < 2)
		err = put_with(stream, record, type->list, text.text, text.used);
	for (size_t first = 0, count; parts > 1 && first < sizes.total && !err; first += count) {
		json_t *piece = frame_of(record, type, !part);
		size_t size = 0;

		count = sizes_fitting(&sizes, first, base);
		for (size_t i = first; i < first + count; i++)
			size += sizes.bytes[i] + (i > first);
		json_object_set_new(piece, "part", json_integer(++part));
		json_object_set_new(piece, "parts", json_integer(parts));
		err = put_with(stream, piece, type->list, text.text + at, size);
		at += size + 1;
		json_decref(piece);
	}
	free(sizes.bytes);
	free(text.text);
	return err;
}

/* Whether two events of the same name count the same. */
static bool same_event(const json_t *before, const json_t *now)
{
	static const char *const members[] = {"type",	      "config",		"config1",    "config2",
					      "exclude_user", "exclude_kernel", "exclude_hv", "exclude_idle",
					      "exclude_host", "exclude_guest"};
	const json_t *old_attr = json_object_get(before, "attr"), *attr = json_object_get(now, "attr");

	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		json_t *old = json_object_get(old_attr, members[i]), *new = json_object_get(attr, members[i]);

		if (old != new && !json_equal(old, new))
			return false;
	}
	return true;
}

/* A reload can give the name of an event to another one. */
static void take_events(struct stream *stream, const char *activity, json_t *events)
{
	const json_t *known = json_object_get(stream->events, activity);
	json_t *before, *now;
	size_t i, j;

	json_array_foreach(known, i, before)
		json_array_foreach(events, j, now)
			if (!strcmp(string(before, "name"), string(now, "name")) &&
			    integer(before, "nth") == integer(now, "nth") && !same_event(before, now) &&
			    stream->format->begin_anew)
				stream->format->begin_anew(stream, activity, string(now, "name"));
	if (!stream->events)
		stream->events = json_object();
	json_object_set(stream->events, activity, events);
}

static void remember_record(struct stream *stream, json_t *record, const char *activity)
{
	const char *type = json_string_value(json_object_get(record, "type"));

	if (!strcmp(type, "frames"))
		calls_define(&stream->calls, record);
	if (!strcmp(type, "start") && !stream->start)
		stream->start = json_incref(record);
	if (!strcmp(type, "start") && json_object_get(record, "events"))
		take_events(stream, activity ? activity : "", json_object_get(record, "events"));
}

bool stream_is_for(const struct stream *stream, const char *activity)
{
	return !stream->activities || !activity || !strcmp(activity, SESSION) ||
	       has_text(stream->activities, activity);
}

bool stream_takes(const struct stream *stream, const char *activity)
{
	return !stream->aside && stream_is_for(stream, activity);
}

static bool takes_type(const struct stream *stream, const char *type)
{
	return !stream->types || has_text(stream->types, type);
}

bool stream_tells(const struct stream *stream, const char *type)
{
	return !stream->aside && !stream->sink.error && !stream->format->keys && takes_type(stream, type);
}

/* Adds the envelope to a record and writes it. The record is consumed. */
static int write_record(struct stream *stream, json_t *record, const char *activity)
{
	const struct record_type *type = record_type_of(record);
	int err;

	stream->activity = activity;
	if (stream->sink.documents && json_object_get(record, "start_time"))
		stream->since = timespec_of(moment(record, "start_time"));
	if (type && type->list && stream->format->lines)
		err = write_parts(stream, record, type);
	else
		err = output(stream, record);
	json_decref(record);
	return err;
}

/* --- room ------------------------------------------------------------------------------------- */

/* Records of a single sample or branch. They are many, and losing them loses no counts: the tables have the
 * same samples. */
static bool is_single(const char *type)
{
	return !strcmp(type, "sample") || !strcmp(type, "traced");
}

/* Records that are rare may fill twice the queue, so that they are kept when samples have filled it. The
 * bound is needed all the same: a stream may be unread for weeks. */
static bool is_let_in(const struct stream *stream, const char *type)
{
	if (stream->ending || stream->admits == ADMIT_ALL)
		return true;
	return stream->admits != ADMIT_NONE &&
	       (sink_has_room(&stream->sink, 1) || (!is_single(type) && sink_has_room(&stream->sink, 2)));
}

static void count_missed(struct stream *stream, __u64 records)
{
	struct gap *gap = &stream->gap;

	if (!records)
		return;
	/* While a whole interval is being missed, the time is read for its first record and once more at its
	 * end (stream_end_interval()), not for each record. */
	if (stream->admits != ADMIT_NONE || !gap->records)
		clock_gettime(CLOCK_REALTIME, &gap->until);
	if (!gap->records && !gap->stopped)
		gap->since = gap->until;
	gap->records += records;
}

/* Moves the count of the type that was missed last into `types`. */
static void settle_types(struct gap *gap)
{
	json_int_t before;

	if (!gap->last_nr)
		return;
	before = json_integer_value(json_object_get(gap->types, gap->last_type));
	json_object_set_new(gap->types, gap->last_type, json_integer(before + gap->last_nr));
	gap->last_nr = 0;
}

/* last_type points to the key in `types`, which stays valid as long as `types` does. */
static void begin_type(struct gap *gap, const char *type)
{
	settle_types(gap);
	if (!gap->types)
		gap->types = json_object();
	if (!json_object_get(gap->types, type))
		json_object_set_new(gap->types, type, json_integer(0));
	gap->last_type = json_object_iter_key(json_object_iter_at(gap->types, type));
	gap->literal = NULL;
}

void stream_miss(struct stream *stream, const char *type, unsigned int every)
{
	struct gap *gap = &stream->gap;

	count_missed(stream, 1);
	if (!gap->last_type || strcmp(gap->last_type, type))
		begin_type(gap, type);
	gap->last_nr++;
	gap->beyond += gap_beyond(every);
}

/* Tells how many samples the missing records stood for, where it is more than their number. */
static void add_weight(json_t *record, json_t *types, __u64 beyond)
{
	if (beyond)
		json_object_set_new(record, "missing", json_integer(integer(types, "sample") + beyond));
}

void stream_tell_gap(struct stream *stream)
{
	struct gap gap = stream->gap;
	json_t *record;

	if (!gap.records && (!gap.stopped || gap.expected)) {
		stream->gap = gap.expected ? (struct gap){0} : gap;
		return;
	}
	settle_types(&gap);
	stream->gap = (struct gap){0};
	if (!timespec_is_set(&gap.until))
		clock_gettime(CLOCK_REALTIME, &gap.until);
	record = json_pack("{s:s, s:s, s:o, s:o, s:I}", "type", "gap", "cause",
			   gap.stopped ? gap.stopped : "queue_full", "since", value_time(&gap.since), "until",
			   value_time(&gap.until), "records", (json_int_t)gap.records);
	add_weight(record, gap.types, gap.beyond);
	if (gap.types)
		json_object_set_new(record, "types", gap.types);
	if (gap.stopped)
		json_object_set_new(record, "why", value_text(gap.why, sizeof(gap.why)));
	write_record(stream, record, stream->owner);
	/* What goes on from interval to interval is told again by the next document. A gap that is a record
	 * of its document, instead of a number in it, is none of those that are missed. */
	if (gap.records && !stream->place.cumulative && !stream->format->replaces)
		stream->sink.missed += gap.records - (stream->format->rows || !stream->format->finish);
}

void stream_begin_interval(struct stream *stream, __u64 began_ns, bool last)
{
	stream->began_ns = began_ns;
	stream->admits = sink_has_room(&stream->sink, last ? 2 : 1) ? ADMIT_ALL : ADMIT_NONE;
}

void stream_end_interval(struct stream *stream)
{
	bool missed = stream->admits == ADMIT_NONE;

	stream->admits = ADMIT_BY_ROOM;
	if (!missed)
		stream_finish(stream, false);
	else if (stream->gap.records)
		clock_gettime(CLOCK_REALTIME, &stream->gap.until);
}

void stream_finish(struct stream *stream, bool last)
{
	/* A page that can't replace the previous one (on stdout or a socket), and a file of the whole run,
	 * are written only at the end of the run. A page for --listen is made when a client asks for it. */
	bool at_end = (stream->format->replaces || stream->format->whole) && !stream->sink.documents;
	bool waits = stream->scraped || (at_end && !last);
	struct timespec now;

	if (stream->format->finish && !waits)
		stream->format->finish(stream);
	if (!stream->sink.documents)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	if (timespec_ns(&stream->since) > timespec_ns(&now)) /* the clock was set back */
		stream->since = now;
	/* Without a document after it, what is dropped is the last: then sink_close() tells it. */
	if (sink_cut(&stream->sink, &stream->since, &now))
		count_missed(stream, sink_take_dropped(&stream->sink));
	stream->since = now;
}

static bool let_in(struct stream *stream, const char *type, const char *activity, unsigned int every)
{
	if (!stream_takes(stream, activity) || !takes_type(stream, type))
		return false;
	if (!is_let_in(stream, type)) {
		stream_miss(stream, type, every);
		return false;
	}
	/* If the disk is still full, the gap is reported later, once it no longer is. */
	if (stream->gap.records && !stream->sink.stopped)
		stream_tell_gap(stream);
	return true;
}

/* Most formats but JSON look at the elements of lists, and all do at those of frames. */
static void open_list(json_t *record)
{
	const struct record_type *type = record_type_of(record);

	if (type && type->list)
		rows_open(record, type->list);
}

int stream_write(struct stream *stream, json_t *record, const char *activity)
{
	if (!stream->format->lines && stream_takes(stream, activity)) {
		if (!stream->format->texts || !strcmp(string(record, "type"), "frames"))
			open_list(record);
		remember_record(stream, record, activity);
	}
	if (let_in(stream, json_string_value(json_object_get(record, "type")), activity, 0))
		return write_record(stream, record, activity);
	json_decref(record);
	return -stream->sink.error;
}

int stream_write_fields(struct stream *stream, const char *type, const struct fields *fields,
			const char *activity)
{
	json_t *record;

	if (!let_in(stream, type, activity, fields->every)) {
		if (!stream->activities && !stream->types)
			stream->gap.literal = type;
		return -stream->sink.error;
	}
	if (!stream->format->write_fields) {
		record = json_pack("{s:s}", "type", type);
		fields_put(fields, record);
		return write_record(stream, record, activity);
	}
	stream->activity = activity;
	return stream->format->write_fields(stream, type, fields);
}

/* Causes of a standstill: what ends it, and, if the other outputs tell it as an error, what to do. */
static const struct standstill {
	const char *cause, *until, *next;
} standstills[] = {
	{"disconnected", "there is a connection", NULL},
	{"disk_full", "there is room", NULL},
	{"unopened", "the file can be opened", "check the folder and its permissions"},
	{"stalled", "it does", "check the server of the file system"},
};

static const struct standstill *standstill_of(const char *cause)
{
	size_t i = 0;

	while (strcmp(standstills[i].cause, cause))
		i++;
	return &standstills[i];
}

/* Reports that nothing can be written for now. What waits stays in the queue. */
static void suspend(struct stream *stream)
{
	const struct sink *sink = &stream->sink;
	struct gap *gap = &stream->gap;

	gap->stopped = sink_cause(sink);
	snprintf(gap->why, sizeof(gap->why), "%s", sink_why(sink));
	clock_gettime(CLOCK_REALTIME, &gap->since);
	gap->expected = sink->unopened && sink->fd < 0 && sink->stopped == ENXIO;
	stream->untold = !gap->expected && standstill_of(gap->stopped)->next;
	say("nhmtap: writing to %s: %s; it goes on when %s", sink->path ? sink->path : "stdout", gap->why,
	    gap->expected ? "somebody does" : standstill_of(gap->stopped)->until);
}

static json_t *rejected_news(struct stream *stream, bool last)
{
	struct push_rejected rejected;
	json_t *record;

	if (!pusher.take_rejected(stream->sink.push, &rejected, last))
		return NULL;
	record = json_pack("{s:s, s:o, s:I, s:s, s:o, s:I}", "type", "warning", "start_time",
			   value_time(&rejected.since), "duration_ns",
			   (json_int_t)((rejected.until.tv_sec - rejected.since.tv_sec) * 1000000000LL +
					rejected.until.tv_nsec - rejected.since.tv_nsec),
			   "cause", rejected.whole ? "refused" : "rejected", "output",
			   value_text(stream->sink.path, 1024), rejected.whole ? "refused" : "rejected",
			   (json_int_t)rejected.points);
	json_object_set_new(record, "why",
			    value_text(*rejected.message ? rejected.message : "the server does not say why",
				       sizeof(rejected.message)));
	return record;
}

json_t *stream_take_news(struct stream *stream, bool last)
{
	const char *path = stream->sink.path;
	const struct standstill *cause;
	struct refusal refusal;
	json_t *record;

	if (stream->sink.push)
		return rejected_news(stream, last);
	if (!stream->untold || !stream->gap.stopped)
		return NULL;
	cause = standstill_of(stream->gap.stopped);
	stream->untold = false;
	refuse(&refusal, STATUS_PARTIAL, "writing to %s", path);
	refusal.error = stream->sink.stopped;
	because(&refusal, "%s; records wait until %s", stream->gap.why, cause->until);
	instead(&refusal, "%s", cause->next);
	record = record_error(&refusal);
	json_object_set_new(record, "output", value_text(path, 1024));
	return record;
}

/* The number in a line's member, ",\"every\":" for example; 0: it has none. No text can look like it: its
 * quotes are escaped. */
static __u64 number_after(const char *line, const char *end, const char *member)
{
	const char *at = memmem(line, end - line, member, strlen(member));

	return at ? strtoull(at + strlen(member), NULL, 10) : 0;
}

/* What waits in an output that is given up. */
struct untaken {
	json_t *types; /* {type: records} */
	__u64 records;
	__u64 beyond;  /* as in struct gap */
	json_t *since; /* of the first gap among them; NULL: there is none */
};

static void add_type(struct untaken *untaken, const char *type, json_int_t records)
{
	json_object_set_new(untaken->types, type, json_integer(integer(untaken->types, type) + records));
}

/* Nobody reads this gap, so what it tells is a part of the one that is told instead. */
static void add_gap(struct untaken *untaken, const char *line, size_t length)
{
	json_t *gap = json_loadb(line, length, 0, NULL), *types = json_object_get(gap, "types"), *records;
	json_int_t missing = integer(gap, "missing");
	const char *type;

	untaken->records += integer(gap, "records") - 1;
	json_object_foreach(types, type, records)
		add_type(untaken, type, json_integer_value(records));
	if (missing)
		untaken->beyond += missing - integer(types, "sample");
	if (!untaken->since)
		untaken->since = json_incref(json_object_get(gap, "since"));
	json_decref(gap);
}

/* Adds what is in a text of lines. Their number is known already. */
static void add_lines(struct untaken *untaken, const char *text, size_t size)
{
	untaken->types = json_object();
	for (const char *line = text, *end; line < text + size; line = end + 1) {
		char type[32];

		end = memchr(line, '\n', text + size - line);
		if (!end)
			break;
		if (sscanf(line, "{\"type\":\"%31[a-z_]\"", type) != 1)
			continue;
		if (!strcmp(type, "gap")) {
			add_gap(untaken, line, end - line);
			continue;
		}
		add_type(untaken, type, 1);
		untaken->beyond += !strcmp(type, "lost") ? number_after(line, end, ",\"missing\":")
							 : gap_beyond(number_after(line, end, ",\"every\":"));
	}
}

json_t *stream_lost(struct stream *stream, const char *why)
{
	const struct sink *sink = &stream->sink;
	const char *name = sink->path ? sink->path : "stdout";
	struct untaken untaken = {.records = sink_records(sink)};
	struct timespec now;
	json_t *lost;

	if (!untaken.records)
		return NULL;
	if (stream->format->lines)
		add_lines(&untaken, queue_unwritten(&sink->queue), queue_left(&sink->queue));
	clock_gettime(CLOCK_REALTIME, &now);
	say("nhmtap: the output %s was removed, and %llu records that waited for it are lost: %s", name,
	    (unsigned long long)untaken.records, why);
	lost = json_pack("{s:s, s:s, s:o, s:o, s:I, s:o, s:o}", "type", "gap", "cause", "removed", "since",
			 value_time(&stream->leaving.since), "until", value_time(&now), "records",
			 (json_int_t)untaken.records, "why", value_text(why, 160), "output",
			 value_text(name, 1024));
	if (untaken.since)
		json_object_set_new(lost, "since", untaken.since);
	if (untaken.types) {
		add_weight(lost, untaken.types, untaken.beyond);
		json_object_set_new(lost, "types", untaken.types);
	}
	return lost;
}

int stream_flush(struct stream *stream)
{
	int err = stream->format->settle ? stream->format->settle(stream) : 0;

	stream->dated.records = 0;
	err = err ?: sink_flush(&stream->sink);
	if (stream->ending)
		return err;
	if (stream->sink.stopped && !stream->gap.stopped)
		suspend(stream);
	if (err || stream->sink.stopped || !stream->gap.stopped)
		return err;
	stream->gap.until = (struct timespec){0};
	stream_tell_gap(stream);
	return sink_flush(&stream->sink);
}

int stream_close(struct stream *stream)
{
	free(stream->line.text);
	stream->line = (struct compact){0};
	calls_release(&stream->calls);
	json_decref(stream->start);
	json_decref(stream->events);
	json_decref(stream->gap.types);
	release_state(stream);
	return sink_close(&stream->sink);
}

void stream_release(struct stream *stream)
{
	json_decref(stream->place.document);
	json_decref(stream->home);
}
