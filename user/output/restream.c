// SPDX-License-Identifier: GPL-2.0-only
#include "output/restream.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "output/member.h"
#include "output/output.h"
#include "record/compact.h"
#include "record/shorter.h"
#include "record/type.h"

/* State for one run (run_id) in the stream. */
struct restreamed_run {
	struct restreamed_run *next;
	char *id;
	json_int_t shift; /* how many records more than in the input were written */
	/* The parts of a record of which more parts are to come, each with its line. */
	struct piece {
		json_t *record;
		char *line;
		size_t size;
	} * pieces;
	size_t nr;
};

static struct restreamed_run *run_of(struct restream *restream, const json_t *record)
{
	const char *id = json_string_value(json_object_get(record, "run_id"));
	struct restreamed_run *run = restream->runs;

	while (run && strcmp(run->id, id ? id : ""))
		run = run->next;
	if (run)
		return run;
	run = xcalloc(1, sizeof(*run));
	run->id = xstrdup(id ? id : "");
	run->next = restream->runs;
	restream->nr_runs++;
	return restream->runs = run;
}

static void forget_run(struct restream *restream, struct restreamed_run *run)
{
	struct restreamed_run **at = &restream->runs;

	while (*at != run)
		at = &(*at)->next;
	*at = run->next;
	restream->nr_runs--;
	free(run->pieces);
	free(run->id);
	free(run);
}

/* --- writing ---------------------------------------------------------------------------------- */

static int put_record(struct restream *restream, const json_t *record)
{
	struct compact line = {0};
	int err;

	compact_add_value(&line, record);
	compact_add(&line, "\n", 1);
	err = sink_put(restream->sink, line.text, line.used);
	free(line.text);
	return err;
}

/* Writes a record unchanged, except for `seq` and the number of records, which shift if earlier records were
 * cut into more parts than before. */
static int put_shifted(struct restream *restream, struct restreamed_run *run, json_t *record,
		       const char *line, size_t size)
{
	if (!run->shift)
		return sink_put(restream->sink, line, size);
	json_object_set_new(record, "seq", json_integer(integer(record, "seq") + run->shift));
	if (json_object_get(record, "records"))
		json_object_set_new(record, "records", json_integer(integer(record, "records") + run->shift));
	return put_record(restream, record);
}

static int release_pieces(struct restream *restream, struct restreamed_run *run)
{
	int err = 0;

	for (size_t i = 0; i < run->nr; i++) {
		if (!err)
			err = put_shifted(restream, run, run->pieces[i].record, run->pieces[i].line,
					  run->pieces[i].size);
		json_decref(run->pieces[i].record);
		free(run->pieces[i].line);
	}
	run->nr = 0;
	return err;
}

/* Members that the output adds to every record. */
static const char *const envelope[] = {"type", "schema_version", "time", "run_id", "seq", "activity", NULL};

static void carry_members(json_t *frame, const json_t *first, const char *const *members)
{
	for (; *members; members++)
		if (json_object_get(first, *members))
			json_object_set(frame, *members, json_object_get(first, *members));
}

/* The first part without its list; with `others`, only the members that the other parts have as well. */
static json_t *frame_of(const json_t *first, const char *list, bool others)
{
	const struct record_type *type = record_type_of(first);
	json_t *frame = others && type->kept[0] ? json_object() : json_copy((json_t *)first);

	carry_members(frame, first, envelope);
	carry_members(frame, first, type->kept);
	json_object_del(frame, list);
	json_object_del(frame, "part");
	json_object_del(frame, "parts");
	return frame;
}

/* sizes_of() has measured it shorter if it is too long. No cut takes more than half of an element. */
static void add_element(json_t *piece, json_t *element, size_t bytes)
{
	if (bytes > ELEMENT_MAX / 2)
		json_array_append_new(piece, value_shorter(element, ELEMENT_MAX));
	else
		json_array_append(piece, element);
}

#define NUMBERS_MAX 60 /* room for part, parts, and the digits by which seq can grow */

/* Writes one record with this list, in as many parts as are needed. Returns 0 or -errno. */
static int put_list(struct restream *restream, const json_t *first, const char *list, const json_t *elements,
		    json_int_t seq, size_t *parts)
{
	json_t *frames[] = {frame_of(first, list, false), frame_of(first, list, true)};
	size_t beside = strlen(list) + 8 + NUMBERS_MAX, at = 0;
	size_t bases[] = {compact_bytes(frames[0]) + beside, compact_bytes(frames[1]) + beside};
	struct compact text = {0};
	struct sizes sizes = sizes_of(elements, &text);
	int err = 0;

	*parts = 0;
	do
		at += sizes_fitting(&sizes, at, bases[!!*parts]);
	while (++*parts, at < sizes.total);
	at = 0;
	for (size_t part = 0; part < *parts && !err; part++) {
		size_t count = sizes_fitting(&sizes, at, bases[!!part]);
		json_t *record = json_copy(frames[!!part]), *piece = json_array();

		for (size_t i = at; i < at + count; i++)
			add_element(piece, json_array_get(elements, i), sizes.bytes[i]);
		json_object_set_new(record, "seq", json_integer(seq + part));
		json_object_set_new(record, list, piece);
		if (*parts > 1) {
			json_object_set_new(record, "part", json_integer(part + 1));
			json_object_set_new(record, "parts", json_integer(*parts));
		}
		err = put_record(restream, record);
		json_decref(record);
		at += count;
	}
	free(sizes.bytes);
	free(text.text);
	json_decref(frames[0]);
	json_decref(frames[1]);
	return err;
}

/* --- a whole record ------------------------------------------------------------------------------ */

/* Changes and writes a record of which all parts have come. */
static int put_whole(struct restream *restream, struct restreamed_run *run, const char *list)
{
	json_int_t seq = integer(run->pieces[0].record, "seq") + run->shift;
	json_t *elements = json_array();
	size_t was = run->nr, parts;
	bool changed = false;
	int err;

	for (size_t i = 0; i < run->nr; i++) {
		json_t *own = json_object_get(run->pieces[i].record, list);

		changed |= restream->change(restream->of, run->pieces[i].record, own);
		json_array_extend(elements, own);
	}
	if (changed) {
		err = put_list(restream, run->pieces[0].record, list, elements, seq, &parts);
		run->shift += (json_int_t)parts - (json_int_t)was;
		for (size_t i = 0; i < run->nr; i++) {
			json_decref(run->pieces[i].record);
			free(run->pieces[i].line);
		}
		run->nr = 0;
	} else {
		err = release_pieces(restream, run);
	}
	json_decref(elements);
	return err;
}

static bool is_same_member(const json_t *first, const json_t *record, const char *member)
{
	const json_t *a = json_object_get(first, member), *b = json_object_get(record, member);

	return (!a && !b) || json_equal(a, b);
}

/* Whether the record is the next part of the record whose parts wait. */
static bool continues(const struct restreamed_run *run, const json_t *record, const char *list)
{
	const struct record_type *type = record_type_of(record);
	const json_t *first = run->nr ? run->pieces[0].record : NULL;

	if (!list || integer(record, "part") != (json_int_t)run->nr + 1)
		return false;
	for (const char *const *member = type->kept; first && *member; member++)
		if (!is_same_member(first, record, *member))
			return false;
	return !first ||
	       (is_same_member(first, record, "type") && is_same_member(first, record, "activity") &&
		is_same_member(first, record, "parts"));
}

static void keep_piece(struct restreamed_run *run, json_t *record, const char *line, size_t size)
{
	struct piece *piece = xappend(run->pieces, run->nr);

	*piece = (struct piece){json_incref(record), xmalloc(size), size};
	memcpy(piece->line, line, size);
}

static int take_record(struct restream *restream, struct restreamed_run *run, json_t *record,
		       const char *line, size_t size)
{
	const char *list = restream->list_of(record);
	bool cut = json_object_get(record, "part"), next = cut && continues(run, record, list);
	int err = next ? 0 : release_pieces(restream, run);

	if (err)
		return err;
	/* If earlier parts are missing the record is written as it is: without them it can't be cut anew. */
	if (!list || (cut && !next && !continues(run, record, list)))
		return put_shifted(restream, run, record, line, size);
	keep_piece(run, record, line, size);
	return cut && (json_int_t)run->nr < integer(record, "parts") ? 0 : put_whole(restream, run, list);
}

/* Every record is looked up in the list of runs that have any state. If more runs than this have state, the
 * oldest no longer waits for the missing parts of its record. */
#define RUNS_MOST 1000

/* Writes the parts that are there of the run that has waited longest for further parts. */
static int pass_oldest(struct restream *restream)
{
	struct restreamed_run *oldest = NULL;
	int err;

	for (struct restreamed_run *run = restream->runs; run; run = run->next)
		oldest = run->nr ? run : oldest;
	if (!oldest)
		return 0;
	err = release_pieces(restream, oldest);
	if (!oldest->shift)
		forget_run(restream, oldest);
	return err;
}

static int restream_one(struct restream *restream, json_t *record, const char *line, size_t size)
{
	int failed = restream->nr_runs > RUNS_MOST ? pass_oldest(restream) : 0;
	struct restreamed_run *run = run_of(restream, record);
	const char *type = json_string_value(json_object_get(record, "type"));
	int err = take_record(restream, run, record, line, size);

	/* A run without a shift and without waiting parts needs no state. */
	if ((type && !strcmp(type, "end")) || (!run->shift && !run->nr))
		forget_run(restream, run);
	return err ? err : failed;
}

int restream_record(struct restream *restream, json_t *record, const char *line, size_t size)
{
	int err = restream_one(restream, record, line, size);

	json_decref(record);
	return err;
}

int restream_end(struct restream *restream)
{
	int err = 0, failed;

	while (restream->runs) {
		failed = release_pieces(restream, restream->runs);
		err = err ? err : failed;
		forget_run(restream, restream->runs);
	}
	return err;
}
