// SPDX-License-Identifier: GPL-2.0-only
/*
 * OpenTelemetry's profiles (opentelemetry-proto 1.11, profiles/v1development): a message for each interval
 * with one profile for each event and kind of value, since a profile has values of one kind. The first one
 * has what samples stand for, which viewers show first. In otlp_profiles.proto are the fields.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"
#include "otlp_profiles.pb-c.h"
#include "output/calls.h"
#include "output/flatten.h"
#include "output/member.h"
#include "output/otlp_profile_id.h"
#include "output/otlp_resource.h"
#include "output/profiles.h"
#include "output/protobuf.h"
#include "output/protobuf_json.h"

/* Tables of the dictionary: {an item as text: its place}; of MAPPINGS as profile_file() has it. */
enum table { TEXTS, MAPPINGS, LOCATIONS, FUNCTIONS, ATTRIBUTES, STACKS, TABLES };

/* What was gathered in an interval. */
struct otlp_message {
	Otlp__ProfilesData *data; /* NULL: nothing yet */
	json_t *places[TABLES];
	json_t **published; /* of each of the data's resources, what its process has published; NULL: nothing,
			       or it is not one process's */
	size_t nr_published;
	struct otlp_contexts contexts; /* outlive the interval */
};

/* The profiles of a record that have one resource, one for each measure. */
struct of_resource {
	size_t resource; /* its index in the data */
	Otlp__Profile *profiles[MEASURES];
	struct map samples[MEASURES]; /* of each profile, by hash */
};

/* A record that is being added. */
struct adding {
	struct otlp_message *gathered;
	struct stream *stream;
	const json_t *record;
	const json_t *event;
	const struct measure *measures;
	size_t nr_measures;
	struct of_resource *resources; /* the first one's is the first one of the data */
	size_t nr_resources;
};

#define APPEND		PROTOBUF_APPEND
#define NEW(type, TYPE) PROTOBUF_NEW(Otlp__##type, OTLP__##TYPE##__INIT)

static Otlp__ProfilesDictionary *dictionary_of(const struct otlp_message *gathered)
{
	return gathered->data->dictionary;
}

/* The place of an item that is in a table already; 0 if it is not. */
static int32_t find_place(const struct otlp_message *gathered, enum table table, const char *item)
{
	return json_integer_value(json_object_get(gathered->places[table], item));
}

static int32_t note_place(struct otlp_message *gathered, enum table table, const char *item, size_t place)
{
	json_object_set_new(gathered->places[table], item, json_integer(place));
	return place;
}

/* --- texts and attributes --------------------------------------------------------------------- */

static int32_t add_text(struct otlp_message *gathered, const char *text)
{
	Otlp__ProfilesDictionary *dictionary = dictionary_of(gathered);
	int32_t place = *text ? find_place(gathered, TEXTS, text) : 0;

	if (place || !*text)
		return place;
	APPEND(dictionary->string_table, dictionary->n_string_table, xstrdup(text));
	return note_place(gathered, TEXTS, text, dictionary->n_string_table - 1);
}

static Otlp__AnyValue *any_value(const json_t *value)
{
	Otlp__AnyValue *any = NEW(AnyValue, ANY_VALUE);

	if (json_is_integer(value)) {
		any->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
		any->int_value = json_integer_value(value);
	} else if (json_is_boolean(value)) {
		any->value_case = OTLP__ANY_VALUE__VALUE_BOOL_VALUE;
		any->bool_value = json_is_true(value);
	} else if (json_is_real(value)) {
		any->value_case = OTLP__ANY_VALUE__VALUE_DOUBLE_VALUE;
		any->double_value = json_real_value(value);
	} else {
		const char *text = json_string_value(value);

		any->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		any->string_value = xstrdup(text ? text : "");
	}
	return any;
}

static int32_t add_attribute(struct otlp_message *gathered, const char *name, const json_t *value)
{
	Otlp__ProfilesDictionary *dictionary = dictionary_of(gathered);
	char *text = json_dumps(value, JSON_ENCODE_ANY), *item = xasprintf("%s %s", name, text);
	int32_t place = find_place(gathered, ATTRIBUTES, item);

	if (!place) {
		Otlp__KeyValueAndUnit *attribute = NEW(KeyValueAndUnit, KEY_VALUE_AND_UNIT);

		attribute->key_strindex = add_text(gathered, name);
		attribute->value = any_value(value);
		APPEND(dictionary->attribute_table, dictionary->n_attribute_table, attribute);
		place = note_place(gathered, ATTRIBUTES, item, dictionary->n_attribute_table - 1);
	}
	free(item);
	free(text);
	return place;
}

static int32_t add_attribute_text(struct otlp_message *gathered, const char *name, const char *text)
{
	json_t *value = json_string(text);
	int32_t place = add_attribute(gathered, name, value);

	json_decref(value);
	return place;
}

/* The name that OpenTelemetry's semantic conventions have for a key; otherwise the key's own, below nhmtap.
 * Names with a dot are of these conventions already. */
static void attribute_name(const char *key, char *name, size_t size)
{
	static const char *const conventions[][2] = {
		{"comm", "thread.name"},
		{"tid", "thread.id"},
		{"pid", "process.pid"},
		{"cpu", "cpu.logical_number"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(conventions); i++)
		if (!strcmp(key, conventions[i][0])) {
			snprintf(name, size, "%s", conventions[i][1]);
			return;
		}
	snprintf(name, size, "%s%s", strchr(key, '.') ? "" : "nhmtap.", key);
}

/* --- code ------------------------------------------------------------------------------------- */

static Otlp__Mapping *add_mapping(struct otlp_message *gathered, const json_t *frame)
{
	Otlp__ProfilesDictionary *dictionary = dictionary_of(gathered);
	Otlp__Mapping *mapping = NEW(Mapping, MAPPING);

	mapping->filename_strindex = add_text(gathered, string(frame, "module"));
	mapping->memory_start = profile_range(frame, dictionary->n_mapping_table, &mapping->memory_limit);
	APPEND(dictionary->mapping_table, dictionary->n_mapping_table, mapping);
	return mapping;
}

/* The place of a frame's file; 0 if the frame has none. */
static int32_t mapping_of(struct otlp_message *gathered, const json_t *frame)
{
	Otlp__ProfilesDictionary *dictionary = dictionary_of(gathered);
	struct profile_file file =
		profile_file(gathered->places[MAPPINGS], frame, dictionary->n_mapping_table);
	Otlp__Mapping *mapping;

	if (!file.number)
		return 0;
	mapping = file.number == dictionary->n_mapping_table ? add_mapping(gathered, frame)
							     : dictionary->mapping_table[file.number];
	if (file.build_id)
		APPEND(mapping->attribute_indices, mapping->n_attribute_indices,
		       add_attribute_text(gathered, "process.executable.build_id.gnu", file.build_id));
	return file.number;
}

static int32_t function_of(struct otlp_message *gathered, const char *name, const char *linkage,
			   const char *file)
{
	Otlp__ProfilesDictionary *dictionary = dictionary_of(gathered);
	char *item = xasprintf("%s\n%s", linkage, file);
	int32_t place = find_place(gathered, FUNCTIONS, item);

	if (!place) {
		Otlp__Function *function = NEW(Function, FUNCTION);

		function->name_strindex = add_text(gathered, name);
		function->system_name_strindex = add_text(gathered, linkage);
		function->filename_strindex = add_text(gathered, file);
		APPEND(dictionary->function_table, dictionary->n_function_table, function);
		place = note_place(gathered, FUNCTIONS, item, dictionary->n_function_table - 1);
	}
	free(item);
	return place;
}

static void add_line(struct otlp_message *gathered, Otlp__Location *location, const char *name,
		     const char *linkage, const char *file, json_int_t line)
{
	Otlp__Line *made = NEW(Line, LINE);

	made->function_index = function_of(gathered, name, linkage ? linkage : name, file ? file : "");
	made->line = line;
	APPEND(location->lines, location->n_lines, made);
}

/* Adds a location unless there is an equal one, which is returned instead. */
static int32_t add_location(struct otlp_message *gathered, Otlp__Location *location)
{
	Otlp__ProfilesDictionary *dictionary = dictionary_of(gathered);
	struct compact item = {0};
	int32_t place;

	protobuf_json(&item, &location->base);
	compact_add(&item, "", 1);
	place = find_place(gathered, LOCATIONS, item.text);
	if (place) {
		otlp__location__free_unpacked(location, NULL);
	} else {
		APPEND(dictionary->location_table, dictionary->n_location_table, location);
		place = note_place(gathered, LOCATIONS, item.text, dictionary->n_location_table - 1);
	}
	free(item.text);
	return place;
}

static int32_t location_of(struct otlp_message *gathered, const json_t *frame)
{
	Otlp__Location *location = NEW(Location, LOCATION);

	location->mapping_index = mapping_of(gathered, frame);
	location->address = profile_address(
		frame, dictionary_of(gathered)->mapping_table[location->mapping_index]->memory_start);
	for (size_t i = 0; i < calls_in(frame); i++) {
		struct call call = calls_at(frame, i);
		char name[CALLS_NAME_MAX];
		const char *function = calls_function(&call, name, sizeof(name));

		if (function)
			add_line(gathered, location, function, call.linkage, call.file, call.line);
	}
	APPEND(location->attribute_indices, location->n_attribute_indices,
	       add_attribute_text(gathered, "profile.frame.type",
				  calls_of_kernel(frame) ? "kernel" : "native"));
	return add_location(gathered, location);
}

/* A location that stands for no code, but for a text: the reason why there is no stack, or "[others]". */
static int32_t location_of_words(struct otlp_message *gathered, const char *words)
{
	Otlp__Location *location = NEW(Location, LOCATION);

	add_line(gathered, location, words, NULL, NULL, 0);
	return add_location(gathered, location);
}

/* Adds a stack unless there is an equal one, which is returned instead. */
static int32_t add_stack(struct otlp_message *gathered, Otlp__Stack *stack)
{
	Otlp__ProfilesDictionary *dictionary = dictionary_of(gathered);
	struct compact item = {0};
	int32_t place;

	for (size_t i = 0; i < stack->n_location_indices; i++) {
		compact_add_integer(&item, stack->location_indices[i]);
		compact_add(&item, " ", 1);
	}
	compact_add(&item, "", 1);
	place = find_place(gathered, STACKS, item.text);
	if (place || !stack->n_location_indices) {
		otlp__stack__free_unpacked(stack, NULL);
	} else {
		APPEND(dictionary->stack_table, dictionary->n_stack_table, stack);
		place = note_place(gathered, STACKS, item.text, dictionary->n_stack_table - 1);
	}
	free(item.text);
	return place;
}

static int32_t stack_of(const struct adding *adding, const json_t *entry, bool rest)
{
	Otlp__Stack *stack = NEW(Stack, STACK);
	struct otlp_message *gathered = adding->gathered;
	char words[2 * CALLS_NAME_MAX];
	json_t *id;
	size_t i;

	if (rest)
		APPEND(stack->location_indices, stack->n_location_indices,
		       location_of_words(gathered, "[others]"));
	if (calls_end(entry, words, sizeof(words)))
		APPEND(stack->location_indices, stack->n_location_indices,
		       location_of_words(gathered, words));
	json_array_foreach(json_object_get(entry, "stack"), i, id)
		APPEND(stack->location_indices, stack->n_location_indices,
		       location_of(gathered, calls_frame(&adding->stream->calls, json_integer_value(id))));
	if (calls_lost(entry, words, sizeof(words)))
		APPEND(stack->location_indices, stack->n_location_indices,
		       location_of_words(gathered, words));
	return add_stack(gathered, stack);
}

/* --- samples ---------------------------------------------------------------------------------- */

/* Whether a key is told otherwise: by the profile, or by the stack. */
static bool is_told(const struct row *row, const char *key)
{
	static const char *const of_profile[] = {"event", "nth", "rest", "stack_lost"};

	for (size_t i = 0; i < ARRAY_SIZE(of_profile); i++)
		if (!strcmp(key, of_profile[i]))
			return true;
	return json_object_get(row->from, "stack") && (!strcmp(key, "symbol") || !strcmp(key, "module"));
}

/* Makes a sample of a row without a value. */
static Otlp__Sample *new_sample(struct otlp_message *gathered, const struct row *row, int32_t stack)
{
	Otlp__Sample *sample = NEW(Sample, SAMPLE);
	const char *key;
	json_t *value;
	char name[96];

	sample->stack_index = stack;
	json_object_foreach(row->keys, key, value) {
		if (is_told(row, key))
			continue;
		attribute_name(key, name, sizeof(name));
		APPEND(sample->attribute_indices, sample->n_attribute_indices,
		       add_attribute(gathered, name, value));
	}
	return sample;
}

/* Makes another sample of the same stack and attributes. */
static Otlp__Sample *like_sample(const Otlp__Sample *sample, json_int_t value)
{
	Otlp__Sample *like = NEW(Sample, SAMPLE);

	like->stack_index = sample->stack_index;
	for (size_t i = 0; i < sample->n_attribute_indices; i++)
		APPEND(like->attribute_indices, like->n_attribute_indices, sample->attribute_indices[i]);
	APPEND(like->values, like->n_values, value);
	return like;
}

static struct of_resource *profiles_of(struct adding *adding, const json_t *context);

/* Stacks and attributes are numbered in the same order, so their numbers are not combined by '^' alone. */
static __u64 hash_of(const Otlp__Sample *sample)
{
	const __u64 parts[] = {sample->stack_index,
			       hash_bytes(sample->attribute_indices,
					  sample->n_attribute_indices * sizeof(*sample->attribute_indices))};

	return hash_bytes(parts, sizeof(parts));
}

static bool same_sample(const Otlp__Sample *one, const Otlp__Sample *other)
{
	if (one->stack_index != other->stack_index || one->n_attribute_indices != other->n_attribute_indices)
		return false;
	for (size_t i = 0; i < one->n_attribute_indices; i++)
		if (one->attribute_indices[i] != other->attribute_indices[i])
			return false;
	return true;
}

/* Adds a sample, which is taken over, to the profile of a measure. What makes it different from another one
 * there is its stack and its attributes. Two entries may have the same: of a cgroup that was removed and made
 * again with its path. */
static void put_sample(struct of_resource *to, size_t measure, Otlp__Sample *sample)
{
	Otlp__Profile *profile = to->profiles[measure];
	__u64 hash = hash_of(sample);
	Otlp__Sample *same;

	for (size_t at = 0; (same = map_find_next(&to->samples[measure], hash, &at));)
		if (same_sample(same, sample)) {
			same->values[0] += sample->values[0];
			otlp__sample__free_unpacked(sample, NULL);
			return;
		}
	map_put(&to->samples[measure], hash, sample);
	APPEND(profile->samples, profile->n_samples, sample);
}

/* Adds an entry to each of the profiles of its process's resource. One that counts nothing there is left out.
 */
static int take_row(void *context, const struct row *row)
{
	struct adding *adding = context;
	int32_t stack = stack_of(adding, row->from, json_object_get(row->keys, "rest"));
	struct of_resource *to =
		profiles_of(adding, otlp_context_of(&adding->gathered->contexts, integer(row->from, "pid"),
						    adding->stream->began_ns));
	Otlp__Sample *sample = NULL;

	for (size_t i = 0; i < adding->nr_measures; i++) {
		json_int_t value = integer(row->from, adding->measures[i].member);

		if (!value)
			continue;
		sample = sample ? sample : new_sample(adding->gathered, row, stack);
		put_sample(to, i, like_sample(sample, value));
	}
	if (sample)
		otlp__sample__free_unpacked(sample, NULL);
	return 0;
}

/* --- profiles --------------------------------------------------------------------------------- */

static Otlp__ValueType *value_type(struct otlp_message *gathered, const struct measure *measure)
{
	Otlp__ValueType *made = NEW(ValueType, VALUE_TYPE);

	made->type_strindex = add_text(gathered, measure->type);
	made->unit_strindex = add_text(gathered, measure->unit);
	return made;
}

static void add_profile_attribute(struct otlp_message *gathered, Otlp__Profile *profile, const char *name,
				  const json_t *value)
{
	if (value)
		APPEND(profile->attribute_indices, profile->n_attribute_indices,
		       add_attribute(gathered, name, value));
}

/* What of the samples is in the profile, and what is not. */
static void add_account(struct otlp_message *gathered, Otlp__Profile *profile, const json_t *record)
{
	const json_t *samples = json_object_get(record, "samples"), *count;
	const char *member;
	char name[96];

	add_profile_attribute(gathered, profile, "nhmtap.why", json_object_get(record, "why"));
	json_object_foreach((json_t *)samples, member, count) {
		snprintf(name, sizeof(name), "nhmtap.samples.%s", member);
		if (!json_is_object(count))
			add_profile_attribute(gathered, profile, name, count);
	}
	json_object_foreach(json_object_get(samples, "lost"), member, count) {
		snprintf(name, sizeof(name), "nhmtap.samples.lost.%s", member);
		add_profile_attribute(gathered, profile, name, count);
	}
}

static Otlp__Profile *new_profile(const struct adding *adding, const struct measure *measure)
{
	struct otlp_message *gathered = adding->gathered;
	struct measure main = measure_of_event(&adding->measures[measure_main(adding->measures)],
					       adding->event),
		       own = measure_of_event(measure, adding->event);
	Otlp__Profile *profile = NEW(Profile, PROFILE);
	const char *activity = adding->stream->activity;

	profile->sample_type = value_type(gathered, &own);
	profile->period_type = value_type(gathered, &main);
	profile->period = profile_period(adding->event, adding->record);
	profile->time_unix_nano = moment(adding->record, "start_time");
	profile->duration_nano = integer(adding->record, "duration_ns");
	profile->profile_id = otlp_profile_id();
	if (activity)
		APPEND(profile->attribute_indices, profile->n_attribute_indices,
		       add_attribute_text(gathered, "nhmtap.activity", activity));
	add_profile_attribute(gathered, profile, "nhmtap.event", json_object_get(adding->record, "event"));
	add_profile_attribute(gathered, profile, "nhmtap.nth", json_object_get(adding->record, "nth"));
	add_profile_attribute(gathered, profile, "nhmtap.status", json_object_get(adding->record, "status"));
	return profile;
}

static size_t resource_of(struct adding *adding, const json_t *context);

/* Adds the profiles of a record with a resource to the message, that of the main measure first. The account
 * of the record's samples is in the first ones. */
static struct of_resource *add_profiles(struct adding *adding, size_t resource)
{
	Otlp__ScopeProfiles *scope = adding->gathered->data->resource_profiles[resource]->scope_profiles[0];
	struct of_resource *to = xappend(adding->resources, adding->nr_resources);
	size_t main = measure_main(adding->measures);

	*to = (struct of_resource){.resource = resource};
	for (size_t i = 0; i < adding->nr_measures; i++) {
		to->profiles[i] = new_profile(adding, &adding->measures[i]);
		if (adding->nr_resources == 1)
			add_account(adding->gathered, to->profiles[i], adding->record);
	}
	APPEND(scope->profiles, scope->n_profiles, to->profiles[main]);
	for (size_t i = 0; i < adding->nr_measures; i++)
		if (i != main)
			APPEND(scope->profiles, scope->n_profiles, to->profiles[i]);
	return to;
}

/* The profiles of a record for what a process has published (NULL: nothing). */
static struct of_resource *profiles_of(struct adding *adding, const json_t *context)
{
	size_t resource = resource_of(adding, context);

	for (size_t i = 0; i < adding->nr_resources; i++)
		if (adding->resources[i].resource == resource)
			return &adding->resources[i];
	return add_profiles(adding, resource);
}

/* --- the message ------------------------------------------------------------------------------ */

static ProtobufCBinaryData zeros(size_t size)
{
	return (ProtobufCBinaryData){size, xcalloc(1, size)};
}

/* The first item of each table is the empty one. That of a link has ids of the usual lengths. */
static Otlp__ProfilesDictionary *new_dictionary(void)
{
	Otlp__ProfilesDictionary *dictionary = NEW(ProfilesDictionary, PROFILES_DICTIONARY);
	Otlp__Link *link = NEW(Link, LINK);

	link->trace_id = zeros(16);
	link->span_id = zeros(8);
	APPEND(dictionary->link_table, dictionary->n_link_table, link);
	APPEND(dictionary->mapping_table, dictionary->n_mapping_table, NEW(Mapping, MAPPING));
	APPEND(dictionary->location_table, dictionary->n_location_table, NEW(Location, LOCATION));
	APPEND(dictionary->function_table, dictionary->n_function_table, NEW(Function, FUNCTION));
	APPEND(dictionary->attribute_table, dictionary->n_attribute_table,
	       NEW(KeyValueAndUnit, KEY_VALUE_AND_UNIT));
	APPEND(dictionary->stack_table, dictionary->n_stack_table, NEW(Stack, STACK));
	APPEND(dictionary->string_table, dictionary->n_string_table, xstrdup(""));
	return dictionary;
}

static Otlp__Resource *new_resource(const struct stream *stream, const json_t *context)
{
	json_t *attributes = otlp_resource(stream, context), *value;
	Otlp__Resource *resource = NEW(Resource, RESOURCE);
	const char *name;

	json_object_foreach(attributes, name, value) {
		Otlp__KeyValue *attribute;

		if (json_is_array(value) || json_is_object(value))
			continue;
		attribute = NEW(KeyValue, KEY_VALUE);
		attribute->key = xstrdup(name);
		attribute->value = any_value(value);
		APPEND(resource->attributes, resource->n_attributes, attribute);
	}
	json_decref(attributes);
	return resource;
}

static void add_resource(const struct stream *stream, struct otlp_message *gathered, const json_t *context)
{
	Otlp__ResourceProfiles *resource = NEW(ResourceProfiles, RESOURCE_PROFILES);
	Otlp__ScopeProfiles *scope = NEW(ScopeProfiles, SCOPE_PROFILES);

	resource->resource = new_resource(stream, context);
	scope->scope = NEW(Scope, SCOPE);
	scope->scope->name = xstrdup("nhmtap");
	scope->scope->version = xstrdup(NHMTAP_VERSION);
	APPEND(resource->scope_profiles, resource->n_scope_profiles, scope);
	APPEND(gathered->data->resource_profiles, gathered->data->n_resource_profiles, resource);
	*xappend(gathered->published, gathered->nr_published) = json_incref((json_t *)context);
}

static size_t resource_of(struct adding *adding, const json_t *context)
{
	struct otlp_message *gathered = adding->gathered;

	for (size_t i = 0; i < gathered->nr_published; i++)
		if (gathered->published[i] == context || json_equal(gathered->published[i], context))
			return i;
	add_resource(adding->stream, gathered, context);
	return gathered->nr_published - 1;
}

static void release_gathered(struct otlp_message *gathered)
{
	if (gathered->data)
		otlp__profiles_data__free_unpacked(gathered->data, NULL);
	for (size_t i = 0; i < TABLES; i++)
		json_decref(gathered->places[i]);
	for (size_t i = 0; i < gathered->nr_published; i++)
		json_decref(gathered->published[i]);
	free(gathered->published);
	*gathered = (struct otlp_message){.contexts = gathered->contexts};
}

static struct otlp_message *message_of(struct stream *stream)
{
	if (!stream->own)
		stream->own = xcalloc(1, sizeof(struct otlp_message));
	return stream->own;
}

static void begin_message(const struct stream *stream, struct otlp_message *gathered)
{
	gathered->data = NEW(ProfilesData, PROFILES_DATA);
	gathered->data->dictionary = new_dictionary();
	for (size_t i = 0; i < TABLES; i++)
		gathered->places[i] = json_object();
	add_resource(stream, gathered, otlp_context_of(&gathered->contexts, 0, stream->began_ns));
}

/* --- the formats ------------------------------------------------------------------------------ */

static int take(struct stream *stream, const json_t *record)
{
	struct adding adding = {.stream = stream,
				.record = record,
				.event = profile_event(stream, record),
				.measures = measures_of(record),
				.gathered = message_of(stream)};
	int err;

	if (otlp_take_context(&adding.gathered->contexts, record) || !adding.measures)
		return 0;
	if (!adding.gathered->data)
		begin_message(stream, adding.gathered);
	while (adding.nr_measures < MEASURES && adding.measures[adding.nr_measures].member)
		adding.nr_measures++;
	add_profiles(&adding, 0);
	err = flatten(record, &stream->calls, false, take_row, &adding);
	for (size_t i = 0; i < adding.nr_resources; i++)
		for (size_t measure = 0; measure < MEASURES; measure++)
			map_release(&adding.resources[i].samples[measure]);
	free(adding.resources);
	return err;
}

/* What was gathered, or NULL if nothing was. */
static struct otlp_message *gathered_in(const struct stream *stream)
{
	struct otlp_message *gathered = stream->own;

	return gathered && gathered->data ? gathered : NULL;
}

static int put_binary(struct stream *stream)
{
	struct otlp_message *gathered = gathered_in(stream);
	unsigned char *bytes;
	size_t size;
	int err;

	if (!gathered)
		return 0;
	size = otlp__profiles_data__get_packed_size(gathered->data);
	bytes = xmalloc(size);
	otlp__profiles_data__pack(gathered->data, bytes);
	err = sink_put(&stream->sink, (const char *)bytes, size);
	free(bytes);
	release_gathered(gathered);
	return err;
}

static int put_line(struct stream *stream)
{
	struct otlp_message *gathered = gathered_in(stream);
	struct compact *line = &stream->line;

	if (!gathered)
		return 0;
	line->used = 0;
	protobuf_json(line, &gathered->data->base);
	compact_add(line, "\n", 1);
	release_gathered(gathered);
	return sink_put(&stream->sink, line->text, line->used);
}

static void release(struct stream *stream)
{
	struct otlp_message *gathered = stream->own;

	if (!gathered)
		return;
	release_gathered(gathered);
	otlp_contexts_release(&gathered->contexts);
	free(gathered);
}

static const struct format otlp_profiles = {
	.name = "otlp-profiles",
	.bytes = true,
	.help = "OpenTelemetry's profiles (1.11, v1development) in protobuf, for "
		"http://HOST:PORT/v1development/profiles; implies -g",
	.adds_up = true,
	.commands = COMMANDS_OF_STACKS,
	.keys = "stack",
	.linkage_names = true,
	.resources = true,
	.whole = true,
	.media = "application/x-protobuf",
	.halve = otlp_profiles_halve,
	.ending = ".pb",
	.check = profile_check_intervals,
	.write = take,
	.finish = put_binary,
	.release = release,
};
REGISTER_FORMAT(otlp_profiles);

static const struct format otlp_profiles_json = {
	.name = "otlp-profiles-json",
	.help = "what otlp-profiles has, as JSON: lines, or requests; implies -g",
	.adds_up = true,
	.commands = COMMANDS_OF_STACKS,
	.keys = "stack",
	.linkage_names = true,
	.resources = true,
	.numbered = true,
	.media = "application/json",
	.halve = otlp_profiles_json_halve,
	.write = take,
	.finish = put_line,
	.release = release,
};
REGISTER_FORMAT(otlp_profiles_json);
