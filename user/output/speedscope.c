// SPDX-License-Identifier: GPL-2.0-only
/*
 * A document for speedscope, as its file-format-schema.json describes it: frames, and a profile of type
 * "sampled" for each value that the samples have, so that the viewer's menu offers them. It shows first what
 * the samples stand for.
 *
 * speedscope takes frames with different lines for different functions. So frames have the file of their
 * source, or else the file of their code, but no lines.
 */
#include <stdlib.h>
#include <string.h>

#include "output/member.h"
#include "output/profiles.h"
#include "output/remarks.h"
#include "output/text.h"

struct scoped_document {
	const struct calls *calls;
	const struct measure *measures;
	json_t *known; /* {name and file: index of the frame} */
	json_t *frames;
	json_t *samples[MEASURES], *weights[MEASURES];
	json_int_t sums[MEASURES];
	json_t *stack; /* that is being made: indexes of frames, the outermost first */
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
		json_int_t weight = integer(entry, writing->measures[i].member);

		if (!weight)
			continue;
		json_array_append(writing->samples[i], writing->stack);
		json_array_append_new(writing->weights[i], json_integer(weight));
		writing->sums[i] += weight;
	}
	json_decref(writing->stack);
}

static void add_samples(struct scoped_document *writing, const json_t *record)
{
	const json_t *rest = json_object_get(record, "rest");
	json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(record, "entries"), i, entry) {
		writing->stack = json_array();
		calls_walk(writing->calls, entry, add_step, writing);
		add_sample(writing, entry);
	}
	if (!rest)
		return;
	writing->stack = json_array();
	add_step(writing, &(struct step){.name = "[others]"});
	add_sample(writing, rest);
}

static json_t *profile_at(const struct scoped_document *writing, size_t i, const json_t *event)
{
	struct measure measure = measure_of_event(&writing->measures[i], event);
	bool time = !strcmp(measure.unit, "nanoseconds");

	return json_pack("{ss ss* ss sI sI sO sO}", "type", "sampled", "name", measure.type, "unit",
			 time ? measure.unit : "none", "startValue", (json_int_t)0, "endValue",
			 writing->sums[i], "samples", writing->samples[i], "weights", writing->weights[i]);
}

/* The viewer shows a document's name above all else, and nothing else that is free text. */
static void add_remark(void *to, const struct remark *remark)
{
	if (remark->serious)
		text_add(to, "; %s", remark->text);
}

static json_t *name_of(const struct stream *stream, const json_t *record)
{
	char *title = profile_title(stream);
	struct text text = {0};
	json_t *name;

	text_add(&text, "%s", title);
	remarks_of(record, add_remark, &text);
	name = json_string(text.bytes);
	free(title);
	free(text.bytes);
	return name;
}

static json_t *make_document(const struct stream *stream, const json_t *record,
			     const struct measure *measures)
{
	struct scoped_document writing = {.calls = &stream->calls,
					  .measures = measures,
					  .known = json_object(),
					  .frames = json_array()};
	json_t *profiles = json_array(), *document;

	for (size_t i = 0; i < MEASURES; i++) {
		writing.samples[i] = json_array();
		writing.weights[i] = json_array();
	}
	add_samples(&writing, record);
	for (size_t i = 0; i < MEASURES && measures[i].member; i++)
		json_array_append_new(profiles, profile_at(&writing, i, profile_event(stream, record)));
	document = json_pack(
		"{ss ss so sI s{so} so}", "$schema", "https://www.speedscope.app/file-format-schema.json",
		"exporter", "nhmtap", "name", name_of(stream, record), "activeProfileIndex",
		(json_int_t)measure_main(measures), "shared", "frames", writing.frames, "profiles", profiles);
	for (size_t i = 0; i < MEASURES; i++) {
		json_decref(writing.samples[i]);
		json_decref(writing.weights[i]);
	}
	json_decref(writing.known);
	return document;
}

static int write_speedscope(struct stream *stream, const json_t *record)
{
	const struct measure *measures = measures_of(record);

	if (!measures)
		return 0;
	return profile_put_json(stream, make_document(stream, record, measures));
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
	.check = profile_check,
	.write = write_speedscope,
};
REGISTER_FORMAT(speedscope);
