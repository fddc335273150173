// SPDX-License-Identifier: GPL-2.0-only
/*
 * A document for speedscope, as its file-format-schema.json describes it: frames, and a profile of type
 * "sampled" for each value that the samples of each event have, so that the viewer's menu offers them. It
 * shows first what the samples of the first event stand for.
 *
 * speedscope takes frames with different lines for different functions. So frames have the file of their
 * source, or else the file of their code, but no lines.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "output/member.h"
#include "output/profiles.h"
#include "output/remarks.h"
#include "output/text.h"

/* What a stream has gathered. */
struct scoped_document {
	const struct measure *measures; /* of the record that is taken in */
	size_t first;			/* their first column */
	size_t shown;			/* the column that is shown first */
	struct profile_columns columns;
	json_t *known; /* {name and file: index of the frame} */
	json_t *frames;
	json_t *profiles; /* of each column {samples, weights, sum} */
	json_t *stack;	  /* that is being made: indexes of frames, the outermost first */
	json_t *remarks;  /* {text: true} */
};

static void add_step(void *of, const struct step *step)
{
	struct scoped_document *writing = of;
	const char *file = step_file(step);
	json_t *key = json_sprintf("%s\n%s", step->name, file);
	json_t *index = json_object_get(writing->known, json_string_value(key)), *frame;

	if (!index) {
		index = json_integer(json_array_size(writing->frames));
		json_object_set_new(writing->known, json_string_value(key), index);
		frame = json_pack("{ss}", "name", step->name);
		if (*file)
			json_object_set_new(frame, "file", json_string(file));
		json_array_append_new(writing->frames, frame);
	}
	json_array_append(writing->stack, index);
	json_decref(key);
}

/* Adds the stack that was made to each profile to which the entry contributes. */
static void add_sample(struct scoped_document *writing, const json_t *entry)
{
	for (size_t i = 0; i < MEASURES && writing->measures[i].member; i++) {
		json_t *profile = json_array_get(writing->profiles, writing->first + i);
		json_int_t weight = integer(entry, writing->measures[i].member);

		if (!weight)
			continue;
		json_array_append(json_object_get(profile, "samples"), writing->stack);
		json_array_append_new(json_object_get(profile, "weights"), json_integer(weight));
		json_object_set_new(profile, "sum", json_integer(count_sum(integer(profile, "sum"), weight)));
	}
	json_decref(writing->stack);
}

static void add_samples(struct scoped_document *writing, const struct calls *calls, const json_t *record)
{
	const json_t *rest = json_object_get(record, "rest");
	json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(record, "entries"), i, entry) {
		writing->stack = json_array();
		calls_walk(calls, entry, add_step, writing);
		add_sample(writing, entry);
	}
	if (!rest)
		return;
	writing->stack = json_array();
	add_step(writing, &(struct step){.name = "[others]"});
	add_sample(writing, rest);
}

/* The viewer shows a document's name above all else, and nothing else that is free text. */
static void add_remark(void *to, const struct remark *remark)
{
	if (remark->serious)
		json_object_set_new(to, remark->text, json_true());
}

static struct scoped_document *speedscope_gathering(struct stream *stream)
{
	struct scoped_document *writing = stream->own;

	if (!writing) {
		writing = stream->own = xcalloc(1, sizeof(*writing));
		writing->known = json_object();
		writing->frames = json_array();
		writing->profiles = json_array();
		writing->remarks = json_object();
	}
	return writing;
}

static int take(struct stream *stream, const json_t *record)
{
	const struct measure *measures = measures_of(record);
	struct scoped_document *writing;

	if (!measures)
		return 0;
	writing = speedscope_gathering(stream);
	writing->measures = measures;
	writing->first = profile_columns_of(&writing->columns, stream, record);
	if (!json_array_size(writing->profiles))
		writing->shown = measure_main(measures);
	while (json_array_size(writing->profiles) < profile_columns_nr(&writing->columns))
		json_array_append_new(writing->profiles,
				      json_pack("{s[] s[] sI}", "samples", "weights", "sum", (json_int_t)0));
	add_samples(writing, &stream->calls, record);
	remarks_of(record, add_remark, writing->remarks);
	return 0;
}

/* --- the document ----------------------------------------------------------------------------- */

static json_t *profile_at(const struct scoped_document *writing, size_t i)
{
	const json_t *profile = json_array_get(writing->profiles, i);
	char *name = profile_column_name(&writing->columns, i);
	json_t *made = json_pack("{ss ss* ss sI sI sO sO}", "type", "sampled", "name", name, "unit",
				 profile_column_is_time(&writing->columns, i) ? "nanoseconds" : "none",
				 "startValue", (json_int_t)0, "endValue", integer(profile, "sum"), "samples",
				 json_object_get(profile, "samples"), "weights",
				 json_object_get(profile, "weights"));

	free(name);
	return made;
}

static json_t *name_of(const struct stream *stream, const struct scoped_document *writing)
{
	char *title = profile_title(stream);
	struct text text = {0};
	const char *remark;
	json_t *said, *name;

	text_add(&text, "%s", title);
	json_object_foreach(writing->remarks, remark, said)
		text_add(&text, "; %s", remark);
	name = json_string(text.bytes);
	free(title);
	free(text.bytes);
	return name;
}

static void release(struct stream *stream)
{
	struct scoped_document *writing = stream->own;

	if (!writing)
		return;
	profile_columns_release(&writing->columns);
	json_decref(writing->known);
	json_decref(writing->frames);
	json_decref(writing->profiles);
	json_decref(writing->remarks);
	free(writing);
	stream->own = NULL;
}

static int put_document(struct stream *stream)
{
	const struct scoped_document *writing = stream->own;
	json_t *profiles, *document;
	int err;

	if (!writing)
		return 0;
	profiles = json_array();
	for (size_t i = 0; i < profile_columns_nr(&writing->columns); i++)
		json_array_append_new(profiles, profile_at(writing, i));
	document = json_pack(
		"{ss ss so sI s{sO} so}", "$schema", "https://www.speedscope.app/file-format-schema.json",
		"exporter", "nhmtap", "name", name_of(stream, writing), "activeProfileIndex",
		(json_int_t)writing->shown, "shared", "frames", writing->frames, "profiles", profiles);
	err = profile_put_json(stream, document);
	release(stream);
	return err;
}

static const struct format speedscope = {
	.name = "speedscope",
	.help = "a document for speedscope (speedscope.app); implies -g",
	.adds_up = true,
	.commands = COMMANDS_OF_STACKS,
	.keys = "stack",
	.whole = true,
	.media = "application/json",
	.ending = ".json",
	.check = profile_check_intervals,
	.write = take,
	.finish = put_document,
	.release = release,
};
REGISTER_FORMAT(speedscope);
