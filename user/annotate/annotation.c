// SPDX-License-Identifier: GPL-2.0-only
#include "annotate/annotation.h"

#include <stdlib.h>
#include <string.h>

#include "annotate/source_text.h"
#include "base/array.h"
#include "base/memory.h"
#include "naming/disassembly.h"
#include "naming/naming.h"
#include "output/member.h"
#include "record/record.h"

/* More instructions than most functions have, so that a record stays of a size that people read. */
#define INSTRUCTIONS_MOST 20000

struct annotator {
	struct naming *naming;
	struct worker *worker;
};

struct annotator *annotator_new(void)
{
	static const struct naming_settings settings = {.lines = true};
	struct annotator *annotator = xcalloc(1, sizeof(*annotator));

	annotator->naming = naming_open(&settings);
	annotator->worker = disassembly_worker();
	return annotator;
}

void annotator_release(struct annotator *annotator)
{
	if (!annotator)
		return;
	naming_close(annotator->naming);
	worker_release(annotator->worker);
	free(annotator);
}

/* --- what was sampled ------------------------------------------------------------------------- */

/* What was sampled at a place of a file. */
struct sampled_place {
	const char *module, *build_id; /* of the record */
	__u64 offset;
	json_int_t samples, period, latency, loads;
	json_t *sources; /* {source: samples}; NULL: none */
};

struct sampled_places {
	struct sampled_place *list;
	size_t nr;
	json_int_t period; /* of all entries, wherever they are */
};

static struct sampled_place *place_of(struct sampled_places *places, const json_t *code)
{
	struct sampled_place *place;
	__u64 offset = hex_member(code, "offset");

	for (size_t i = 0; i < places->nr; i++) {
		place = &places->list[i];
		if (place->offset == offset && !strcmp(place->module, string(code, "module")) &&
		    !strcmp(place->build_id, string(code, "build_id")))
			return place;
	}
	place = xappend(places->list, places->nr);
	*place = (struct sampled_place){
		.module = string(code, "module"), .build_id = string(code, "build_id"), .offset = offset};
	return place;
}

static void add_source(struct sampled_place *place, const json_t *entry)
{
	const char *source = string(entry, "source");
	json_int_t before;

	if (!*source)
		return;
	if (!place->sources)
		place->sources = json_object();
	before = integer(place->sources, source);
	json_object_set_new(place->sources, source, json_integer(before + integer(entry, "samples")));
}

static void add_entry(struct sampled_places *places, const json_t *entry)
{
	const json_t *code = json_object_get(entry, "code");
	struct sampled_place *place;

	places->period += integer(entry, "period");
	if (!json_object_get(code, "offset"))
		return;
	place = place_of(places, code);
	place->samples += integer(entry, "samples");
	place->period += integer(entry, "period");
	if (json_object_get(entry, "latency_sum")) {
		place->latency += integer(entry, "latency_sum");
		place->loads += integer(entry, "samples");
	}
	add_source(place, entry);
}

static void release_places(struct sampled_places *places)
{
	for (size_t i = 0; i < places->nr; i++)
		json_decref(places->list[i].sources);
	free(places->list);
}

/* --- functions -------------------------------------------------------------------------------- */

/* The function that the code belongs to, in which others may be inlined; NULL: it has no name. */
static const struct frame *function_of(const struct name *name)
{
	return name->nr ? &name->frames[name->nr - 1] : NULL;
}

/* What comes behind the arguments of a template, if there are any. */
static const char *behind_arguments(const char *at)
{
	int depth = 0;

	if (*at != '<')
		return at;
	do
		depth += (*at == '<') - (*at == '>');
	while (*++at && depth);
	return at;
}

/* Whether a function has the name that the source has for it: compilers add the parameters, the arguments of
 * a template and what it returns, or that it is a variant of the function: ".constprop.0". */
static bool is_in_source(const char *symbol, const char *function)
{
	size_t name = strcspn(symbol, "(");

	for (const char *at = strstr(symbol, function); at && at < symbol + name;
	     at = strstr(at + 1, function))
		if ((at == symbol || at[-1] == ' ') && *behind_arguments(at + strlen(function)) &&
		    strchr("(.", *behind_arguments(at + strlen(function))))
			return true;
	return false;
}

static bool is_called(const struct frame *frame, const char *function)
{
	return frame && *function &&
	       ((frame->symbol &&
		 (!strcmp(frame->symbol, function) || is_in_source(frame->symbol, function))) ||
		(frame->linkage && !strcmp(frame->linkage, function)));
}

/* A function that is annotated. */
struct annotated {
	const struct sampled_place *of; /* one of its places */
	__u64 begin;			/* in the file */
	json_t *whys;			/* {sentence: true}, in their order */
	json_t *instructions;
	json_int_t samples, period;
	struct source_texts *texts;
	char *file; /* of the instruction before, with the line; NULL: not known */
	unsigned int line;
};

static void add_why(struct annotated *annotated, const char *why)
{
	if (why && *why)
		json_object_set_new(annotated->whys, why, json_true());
}

/* The first of the places, which are in the order of their offsets, from this one on. */
static size_t first_from(const struct sampled_places *places, __u64 offset)
{
	return FIRST_NOT(places->nr, i, places->list[i].offset < offset);
}

static bool is_of_file(const struct sampled_place *place, const struct sampled_place *other)
{
	return !strcmp(place->module, other->module) && !strcmp(place->build_id, other->build_id);
}

static void put_samples(struct annotated *annotated, json_t *value, const struct sampled_places *places,
			__u64 offset, size_t size)
{
	json_int_t samples = 0, period = 0, latency = 0, loads = 0;
	json_t *sources = json_object();

	for (size_t i = first_from(places, offset); i < places->nr && places->list[i].offset - offset < size;
	     i++) {
		const struct sampled_place *place = &places->list[i];

		if (!is_of_file(place, annotated->of))
			continue;
		samples += place->samples;
		period += place->period;
		latency += place->latency;
		loads += place->loads;
		if (place->sources)
			json_object_update(sources, place->sources);
	}
	if (samples) {
		json_object_set_new(value, "samples", json_integer(samples));
		json_object_set_new(value, "period", json_integer(period));
	}
	if (loads && latency)
		json_object_set_new(value, "latency_mean", value_real((double)latency / loads));
	if (json_object_size(sources))
		json_object_set(value, "sources", sources);
	json_decref(sources);
	annotated->samples += samples;
	annotated->period += period;
}

/* Puts the line, and its text where it is another than that of the instruction before. */
static void put_line(struct annotated *annotated, json_t *value, const struct frame *innermost)
{
	const char *why = NULL, *text;
	bool same = annotated->file && innermost->file && !strcmp(annotated->file, innermost->file) &&
		    annotated->line == innermost->line;

	if (!innermost->file || !innermost->line)
		return;
	put_text(value, "file", innermost->file);
	json_object_set_new(value, "line", json_integer(innermost->line));
	if (same)
		return;
	free(annotated->file);
	annotated->file = xstrdup(innermost->file);
	annotated->line = innermost->line;
	text = source_text(annotated->texts, annotated->of->module, innermost->file, innermost->line, &why);
	put_text(value, "source", text);
	add_why(annotated, why);
}

/* Adds an instruction, or a place that may be within one (size 1, no text). Returns whether it is still the
 * function's. */
static bool add_instruction(struct annotator *annotator, struct annotated *annotated,
			    const struct sampled_places *places, const char *function, __u64 offset,
			    const struct told_instruction *told)
{
	const struct name *name =
		naming_file(annotator->naming, annotated->of->module, annotated->of->build_id, offset);
	const struct frame *own = function_of(name);
	json_t *value;

	if (!is_called(own, function) || offset - own->offset != annotated->begin)
		return false;
	value = json_pack("{s:o}", "offset", value_hex(offset));
	if (told) {
		json_object_set_new(value, "size", json_integer(told->size));
		put_text(value, "instruction", told->text);
	}
	put_line(annotated, value, &name->frames[0]);
	add_why(annotated, name->why);
	add_why(annotated, name->lines_why);
	put_samples(annotated, value, places, offset, told ? told->size : 1);
	json_array_append_new(annotated->instructions, value);
	return true;
}

static void add_code(struct annotator *annotator, struct annotated *annotated,
		     const struct sampled_places *places, const char *function)
{
	struct disassembly code;
	__u64 offset = annotated->begin;
	bool more = true;

	while (more && json_array_size(annotated->instructions) < INSTRUCTIONS_MOST) {
		size_t i = 0;

		disassembly_read(&code, annotator->worker, annotated->of->module, offset);
		add_why(annotated, code.why);
		/* The last of a piece may be cut, so the next piece begins with it. */
		for (; i + (code.nr > 1) < code.nr && more; i++) {
			more = add_instruction(annotator, annotated, places, function, offset, &code.list[i]);
			offset += code.list[i].size;
		}
		more = more && code.nr > 1;
		disassembly_release(&code);
	}
}

static int by_offset(const void *a, const void *b)
{
	const struct sampled_place *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Without instructions, only the places that were sampled are told. */
static void add_places(struct annotator *annotator, struct annotated *annotated,
		       const struct sampled_places *places, const char *function)
{
	for (size_t i = 0; i < places->nr; i++) {
		const struct sampled_place *place = &places->list[i];

		if (is_of_file(place, annotated->of))
			add_instruction(annotator, annotated, places, function, place->offset, NULL);
	}
}

static bool has_lines(const json_t *instructions)
{
	json_t *value;
	size_t i;

	json_array_foreach(instructions, i, value)
		if (json_object_get(value, "line"))
			return true;
	return false;
}

/* --- records ---------------------------------------------------------------------------------- */

static const char *const carried[] = {"event", "nth", "start_time", "duration_ns"};

static json_t *begin_record(const char *function, const json_t *of)
{
	json_t *record = json_pack("{s:s}", "type", "annotation");

	for (size_t i = 0; i < ARRAY_SIZE(carried); i++)
		json_object_set(record, carried[i], json_object_get(of, carried[i]));
	put_text(record, "function", function);
	return record;
}

static json_t *why_value(const json_t *whys)
{
	json_t *list = json_array(), *value;
	const char *why;

	json_object_foreach((json_t *)whys, why, value)
		json_array_append_new(list, json_string(why));
	return list;
}

static json_t *annotate_one(struct annotator *annotator, const char *function, const json_t *of,
			    const struct sampled_places *places, const struct sampled_place *place,
			    __u64 begin)
{
	struct annotated annotated = {.of = place,
				      .begin = begin,
				      .whys = json_object(),
				      .instructions = json_array(),
				      .texts = source_texts_new()};
	json_t *record = begin_record(function, of);

	add_code(annotator, &annotated, places, function);
	if (!json_array_size(annotated.instructions))
		add_places(annotator, &annotated, places, function);
	if (!has_lines(annotated.instructions))
		add_why(&annotated, "the program has no debug information there, so there are no source "
				    "lines (-g, or its debug package, brings them)");
	put_text(record, "module", place->module);
	put_text(record, "build_id", *place->build_id ? place->build_id : NULL);
	json_object_set_new(record, "sampled", json_integer(annotated.samples));
	json_object_set_new(record, "period", json_integer(annotated.period));
	if (places->period)
		json_object_set_new(record, "share", value_real((double)annotated.period / places->period));
	if (json_object_size(annotated.whys))
		json_object_set_new(record, "why", why_value(annotated.whys));
	json_object_set_new(record, "instructions", annotated.instructions);
	json_decref(annotated.whys);
	source_texts_release(annotated.texts);
	free(annotated.file);
	return record;
}

/* `unnamed`: why some of the code has no name; NULL: all has. */
static json_t *annotate_none(const char *function, const json_t *of, const char *why, const char *unnamed)
{
	json_t *record = begin_record(function, of), *whys = json_pack("[s]", why);

	if (unnamed)
		json_array_append_new(whys, json_sprintf("some code has no name: %s", unnamed));

	json_object_set_new(record, "sampled", json_integer(0));
	json_object_set_new(record, "why", whys);
	json_object_set_new(record, "instructions", json_array());
	return record;
}

static bool is_known(const json_t *list, const struct sampled_place *place, __u64 begin)
{
	json_t *record;
	size_t i;

	json_array_foreach(list, i, record)
		if (!strcmp(string(record, "module"), place->module) &&
		    !strcmp(string(record, "build_id"), place->build_id) &&
		    hex_member(json_array_get(json_object_get(record, "instructions"), 0), "offset") == begin)
			return true;
	return false;
}

/* Of code that is in no file, only the kernel's functions have names here. */
static const char *why_none(struct annotator *annotator, const char *function, const json_t *record)
{
	json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(record, "entries"), i, entry) {
		const json_t *code = json_object_get(entry, "code");
		const struct name *name;

		if (!json_object_get(code, "address") || string(code, "module")[0] != '[')
			continue;
		name = naming_kernel(annotator->naming, hex_member(code, "address"));
		if (is_called(function_of(name), function))
			return "it is a function of the kernel, whose code is not read";
	}
	return "no sample was in a function of this name; one that is inlined is in the code of its caller";
}

json_t *annotate(struct annotator *annotator, const char *function, const json_t *record)
{
	struct sampled_places places = {0};
	json_t *list = json_array(), *entry;
	const char *unnamed = NULL;
	size_t i;

	json_array_foreach(json_object_get(record, "entries"), i, entry)
		add_entry(&places, entry);
	if (places.nr)
		qsort(places.list, places.nr, sizeof(*places.list), by_offset);
	for (i = 0; i < places.nr; i++) {
		const struct sampled_place *place = &places.list[i];
		const struct name *name =
			naming_file(annotator->naming, place->module, place->build_id, place->offset);
		const struct frame *own = function_of(name);

		unnamed = own ? unnamed : name->why;
		if (is_called(own, function) && !is_known(list, place, place->offset - own->offset))
			json_array_append_new(list, annotate_one(annotator, function, record, &places, place,
								 place->offset - own->offset));
	}
	if (!json_array_size(list))
		json_array_append_new(list, annotate_none(function, record,
							  why_none(annotator, function, record), unnamed));
	release_places(&places);
	return list;
}
