// SPDX-License-Identifier: GPL-2.0-only
/*
 * A profile in the format of pprof: profile.proto (here pprof.proto), gzipped. Each sample has several
 * values, such as the number of samples and the sum of their periods in the event's unit; see profiles.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/path.h"
#include "output/calls.h"
#include "output/gzip.h"
#include "output/member.h"
#include "output/profiles.h"
#include "output/remarks.h"
#include "output/protobuf.h"
#include "pprof.pb-c.h"

struct writing {
	Pprof__Profile *profile;
	size_t program; /* index of the mapping of the program that was measured; 0 if not known */
	int likelihood; /* of that: see likelihood_of() */
	const struct measure *measures;
	const struct calls *calls;
	const char *command; /* the program that was started, as it was called; "" if none was */
	json_t *texts, *files, *functions, *locations; /* {key: id or index of what was added already} */
};

#define APPEND		PROTOBUF_APPEND
#define NEW(type, TYPE) PROTOBUF_NEW(Pprof__##type, PPROF__##TYPE##__INIT)

/* The index of a text in the string table, to which it is added if needed. */
static int64_t add_text(struct writing *writing, const char *text)
{
	json_t *known = json_object_get(writing->texts, text);

	if (!known) {
		known = json_integer(writing->profile->n_string_table);
		APPEND(writing->profile->string_table, writing->profile->n_string_table, xstrdup(text));
		json_object_set_new(writing->texts, text, known);
	}
	return json_integer_value(known);
}

static Pprof__ValueType *value_type(struct writing *writing, const char *type, const char *unit)
{
	Pprof__ValueType *made = NEW(ValueType, VALUE_TYPE);

	made->type = add_text(writing, type);
	made->unit = add_text(writing, unit);
	return made;
}

/* --- where ------------------------------------------------------------------------------------ */

static Pprof__Mapping *add_mapping(struct writing *writing, const json_t *frame)
{
	Pprof__Profile *profile = writing->profile;
	Pprof__Mapping *mapping = NEW(Mapping, MAPPING);

	APPEND(profile->mapping, profile->n_mapping, mapping);
	mapping->id = profile->n_mapping;
	mapping->filename = add_text(writing, string(frame, "module"));
	mapping->memory_start = profile_range(frame, mapping->id, &mapping->memory_limit);
	return mapping;
}

/* The mapping of a frame's file; NULL if the frame has no file. */
static Pprof__Mapping *mapping_of(struct writing *writing, const json_t *frame)
{
	Pprof__Profile *profile = writing->profile;
	struct profile_file file = profile_file(writing->files, frame, profile->n_mapping + 1);
	Pprof__Mapping *mapping;

	if (!file.number)
		return NULL;
	mapping = file.number > profile->n_mapping ? add_mapping(writing, frame)
						   : profile->mapping[file.number - 1];
	if (file.build_id)
		mapping->build_id = add_text(writing, file.build_id);
	return mapping;
}

/* The system name is mangled, because functions with the same name otherwise merge: Rust's implementations of
 * a trait for several types. */
static uint64_t function_of(struct writing *writing, const char *name, const char *system_name,
			    const char *file)
{
	Pprof__Profile *profile = writing->profile;
	json_t *both = json_sprintf("%s\n%s", system_name, file);
	json_t *known = json_object_get(writing->functions, json_string_value(both));

	if (!known) {
		Pprof__Function *function = NEW(Function, FUNCTION);

		APPEND(profile->function, profile->n_function, function);
		function->id = profile->n_function;
		function->name = add_text(writing, name);
		function->system_name = add_text(writing, system_name);
		function->filename = add_text(writing, file);
		known = json_integer(function->id);
		json_object_set_new(writing->functions, json_string_value(both), known);
	}
	json_decref(both);
	return json_integer_value(known);
}

static void add_line(struct writing *writing, Pprof__Location *location, const char *name,
		     const char *system_name, const char *file, json_int_t line)
{
	Pprof__Line *made = NEW(Line, LINE);

	made->function_id = function_of(writing, name, system_name ? system_name : name, file ? file : "");
	made->line = line;
	APPEND(location->line, location->n_line, made);
}

static void add_lines(struct writing *writing, Pprof__Location *location, Pprof__Mapping *mapping,
		      const json_t *frame)
{
	for (size_t i = 0; i < calls_in(frame); i++) {
		struct call call = calls_at(frame, i);
		char name[CALLS_NAME_MAX];
		const char *function = calls_function(&call, name, sizeof(name));

		if (!function)
			continue;
		add_line(writing, location, function, call.linkage, call.file, call.line);
		if (!mapping || !call.symbol)
			continue;
		mapping->has_functions = true;
		mapping->has_filenames |= call.file != NULL;
		mapping->has_line_numbers |= call.line != 0;
		mapping->has_inline_frames |= call.inlined;
	}
}

static Pprof__Location *add_location(struct writing *writing, const char *name)
{
	Pprof__Location *location = NEW(Location, LOCATION);

	APPEND(writing->profile->location, writing->profile->n_location, location);
	location->id = writing->profile->n_location;
	json_object_set_new(writing->locations, name, json_integer(location->id));
	return location;
}

/* Whether the names are the same but for a version at their ends: /usr/bin/python3 leads to python3.11. */
static bool is_version_of(const char *file, const char *command)
{
	static const char version[] = "0123456789.-";
	size_t length = strcspn(command, version);

	return length && strcspn(file, version) == length && !strncmp(file, command, length) &&
	       strspn(file + length, version) == strlen(file + length);
}

/* How likely a frame's file is the program rather than a library: it has the command's name; it is a version
 * of it; it has the function that begins a program; it is at least no library. */
static int likelihood_of(const struct writing *writing, const json_t *frame)
{
	const char *module = string(frame, "module"), *symbol = string(frame, "symbol");

	if (module[0] != '/')
		return 0;
	if (!strcmp(path_last(module), path_last(writing->command)))
		return 4;
	if (strstr(path_last(module), ".so"))
		return 0;
	if (is_version_of(path_last(module), path_last(writing->command)))
		return 3;
	return !strcmp(symbol, "main") || !strcmp(symbol, "_start") ? 2 : 1;
}

static void note_program(struct writing *writing, const json_t *frame, const Pprof__Mapping *mapping)
{
	int likelihood = mapping ? likelihood_of(writing, frame) : 0;

	if (likelihood <= writing->likelihood)
		return;
	writing->likelihood = likelihood;
	writing->program = mapping->id - 1;
}

/* A program without samples, whose time goes to libraries or to code that was made at run time. */
static void add_program(struct writing *writing)
{
	json_t *frame = json_pack("{s:s}", "module", writing->command);

	writing->program = add_mapping(writing, frame)->id - 1;
	json_decref(frame);
}

/* go tool pprof takes the first mapping for the program. */
static void put_program_first(struct writing *writing)
{
	Pprof__Mapping **mappings, *program;

	if (!writing->likelihood && !writing->command[0])
		return;
	if (!writing->likelihood)
		add_program(writing);
	mappings = writing->profile->mapping;
	program = mappings[writing->program];
	memmove(mappings + 1, mappings, writing->program * sizeof(*mappings));
	mappings[0] = program;
}

static uint64_t location_of(struct writing *writing, json_int_t id)
{
	const json_t *frame = calls_frame(writing->calls, id), *known;
	Pprof__Location *location;
	Pprof__Mapping *mapping;
	char name[24];

	snprintf(name, sizeof(name), "%lld", (long long)id);
	known = json_object_get(writing->locations, name);
	if (known)
		return json_integer_value(known);
	mapping = mapping_of(writing, frame);
	note_program(writing, frame, mapping);
	location = add_location(writing, name);
	location->mapping_id = mapping ? mapping->id : 0;
	location->address = profile_address(frame, mapping ? mapping->memory_start : 0);
	add_lines(writing, location, mapping, frame);
	return location->id;
}

/* A location that stands for no code, but for a text: the reason why there is no stack, or "[others]". */
static uint64_t location_of_words(struct writing *writing, const char *words)
{
	const json_t *known = json_object_get(writing->locations, words);
	Pprof__Location *location;

	if (known)
		return json_integer_value(known);
	location = add_location(writing, words);
	add_line(writing, location, words, NULL, NULL, 0);
	return location->id;
}

/* --- samples ---------------------------------------------------------------------------------- */

/* Adds the keys other than the stack as labels. */
static void add_labels(struct writing *writing, Pprof__Sample *sample, const json_t *entry)
{
	static const char *const keys[] = {"comm", "pid", "tid", "cpu", "cgroup", "ip", "source"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const json_t *value = json_object_get(entry, keys[i]);
		Pprof__Label *label;

		if (!value)
			continue;
		label = NEW(Label, LABEL);
		label->key = add_text(writing, keys[i]);
		if (json_is_string(value))
			label->str = add_text(writing, json_string_value(value));
		else
			label->num = json_integer_value(value);
		APPEND(sample->label, sample->n_label, label);
	}
}

static Pprof__Sample *add_sample(struct writing *writing, const json_t *entry)
{
	Pprof__Sample *sample = NEW(Sample, SAMPLE);

	APPEND(writing->profile->sample, writing->profile->n_sample, sample);
	for (size_t i = 0; i < MEASURES && writing->measures[i].member; i++)
		APPEND(sample->value, sample->n_value, integer(entry, writing->measures[i].member));
	return sample;
}

static void add_entry(struct writing *writing, const json_t *entry)
{
	Pprof__Sample *sample = add_sample(writing, entry);
	char words[2 * CALLS_NAME_MAX];
	json_t *id;
	size_t i;

	if (calls_end(entry, words, sizeof(words)))
		APPEND(sample->location_id, sample->n_location_id, location_of_words(writing, words));
	json_array_foreach(json_object_get(entry, "stack"), i, id)
		APPEND(sample->location_id, sample->n_location_id,
		       location_of(writing, json_integer_value(id)));
	if (calls_lost(entry, words, sizeof(words)))
		APPEND(sample->location_id, sample->n_location_id, location_of_words(writing, words));
	add_labels(writing, sample, entry);
}

/* --- the whole -------------------------------------------------------------------------------- */

static void add_types(struct writing *writing, const json_t *event, const json_t *record)
{
	struct measure own = measure_of_event(&(struct measure){0}, event);
	Pprof__Profile *profile = writing->profile;

	for (size_t i = 0; i < MEASURES && writing->measures[i].member; i++) {
		struct measure measure = measure_of_event(&writing->measures[i], event);

		APPEND(profile->sample_type, profile->n_sample_type,
		       value_type(writing, measure.type, measure.unit));
	}
	profile->period_type = value_type(writing, own.type, own.unit);
	profile->period = profile_period(event, record);
}

static void add_comment(struct writing *writing, const char *words)
{
	Pprof__Profile *profile = writing->profile;

	APPEND(profile->comment, profile->n_comment, add_text(writing, words));
}

static void add_machine(struct writing *writing, const json_t *emulated)
{
	char *words;

	if (!emulated)
		return;
	words = xasprintf("emulated machine: model %s, version %s", string(emulated, "model"),
			  string(emulated, "version"));
	add_comment(writing, words);
	free(words);
}

static void add_remark(void *to, const struct remark *remark)
{
	add_comment(to, remark->text);
}

static const char *command_of(const json_t *start)
{
	const char *command = measured_program(start);

	return command ? command : "";
}

static Pprof__Profile *make_profile(const struct stream *stream, const json_t *record,
				    const struct measure *measures)
{
	struct writing writing = {.profile = NEW(Profile, PROFILE),
				  .measures = measures,
				  .calls = &stream->calls,
				  .command = command_of(stream->start),
				  .texts = json_object(),
				  .files = json_object(),
				  .functions = json_object(),
				  .locations = json_object()};
	const json_t *rest = json_object_get(record, "rest"), *entries = json_object_get(record, "entries");
	json_t *entry;
	size_t i;

	add_text(&writing, "");
	add_types(&writing, profile_event(stream, record), record);
	add_machine(&writing, emulated_host(stream->start));
	remarks_of(record, add_remark, &writing);
	writing.profile->time_nanos = moment(record, "start_time");
	writing.profile->duration_nanos = integer(record, "duration_ns");
	json_array_foreach(entries, i, entry)
		add_entry(&writing, entry);
	if (rest) {
		Pprof__Sample *sample = add_sample(&writing, rest);

		APPEND(sample->location_id, sample->n_location_id, location_of_words(&writing, "[others]"));
	}
	put_program_first(&writing);
	json_decref(writing.texts);
	json_decref(writing.files);
	json_decref(writing.functions);
	json_decref(writing.locations);
	return writing.profile;
}

static int write_pprof(struct stream *stream, const json_t *record)
{
	const struct measure *measures = measures_of(record);
	Pprof__Profile *profile;
	unsigned char *bytes;
	size_t size;
	char *zipped;
	int err;

	if (!measures)
		return 0;
	profile = make_profile(stream, record, measures);
	size = pprof__profile__get_packed_size(profile);
	bytes = xmalloc(size);
	pprof__profile__pack(profile, bytes);
	pprof__profile__free_unpacked(profile, NULL);
	zipped = gzip(bytes, size, &size);
	free(bytes);
	err = sink_put(&stream->sink, zipped, size);
	free(zipped);
	return err;
}

static const struct format pprof = {
	.name = "pprof",
	.bytes = true,
	.help = "profile.proto, gzipped, for go tool pprof; implies -g",
	.adds_up = true,
	.commands = COMMANDS_OF_STACKS,
	.keys = "stack",
	.linkage_names = true,
	.whole = true,
	.media = "application/octet-stream",
	.halve = pprof_halve,
	.ending = ".pb.gz",
	.check = profile_check,
	.write = write_pprof,
};
REGISTER_FORMAT(pprof);
