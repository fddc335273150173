// SPDX-License-Identifier: GPL-2.0-only
#include "run/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "activity/activity.h"
#include "base/array.h"
#include "base/copied.h"
#include "base/embedded.h"
#include "base/guarded.h"
#include "base/json_file.h"
#include "base/json_schema.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "option/command.h"
#include "output/member.h"
#include "output/output.h"
#include "run/uses.h"
#include "session/limits.h"
#include "session/share_control.h"

/* Defaults, for long runs, of what CONFIG does not say. */
#define DEFAULT_INTERVAL_MS 10000
#define DEFAULT_FREQUENCY   99
#define DEFAULT_TOP	    50

/* Beyond this, whole numbers are not exact in JSON. */
#define WHOLE_MOST 9007199254740992.0

/* A text among an object's members; NULL: it has none of this name. */
static const char *string_of(const json_t *object, const char *member)
{
	return json_string_value(json_object_get(object, member));
}

/* --- what is wrong, and where ----------------------------------------------------------------- */

static int refuse_at(struct refusal *refusal, const char *pointer)
{
	return refuse(refusal, STATUS_USAGE, "CONFIG, %s", *pointer ? pointer : "the whole");
}

static int refuse_kind(struct refusal *refusal, const char *pointer, const char *takes)
{
	refuse_at(refusal, pointer);
	return because(refusal, "it takes %s", takes);
}

/* Adds the place in CONFIG to a refusal that already has its reason. */
static int is_at(struct refusal *refusal, const char *pointer, const char *member)
{
	char path[POINTER_MOST];

	snprintf(refusal->asked, sizeof(refusal->asked), "CONFIG, %s",
		 json_pointer_below(path, sizeof(path), pointer, member));
	return -1;
}

static int refuse_unknown(struct refusal *refusal, const char *pointer, const char *near)
{
	refuse_at(refusal, pointer);
	because(refusal, "there is no such member");
	return instead(refusal,
		       *near ? "did you mean %s? nhmtap schema config shows all"
			     : "nhmtap schema config shows all%s",
		       near);
}

/* Refuses what the schema does not allow. */
static int refuse_fault(struct refusal *refusal, const struct json_fault *fault)
{
	if (fault->kind == FAULT_UNKNOWN)
		return refuse_unknown(refusal, fault->pointer, fault->near);
	refuse_at(refusal, fault->pointer);
	if (fault->kind == FAULT_OTHER)
		return because(refusal, "it %s", fault->takes);
	if (fault->kind == FAULT_MISSING)
		return because(refusal, "it is missing; it takes %s", fault->takes);
	because(refusal, "it takes %s, not %s", fault->takes, fault->value);
	return fault->near[0] ? instead(refusal, "did you mean %s?", fault->near) : -1;
}

/* --- the file --------------------------------------------------------------------------------- */

static int refuse_file(struct refusal *refusal, const char *path, int error)
{
	refuse(refusal, STATUS_USAGE, "reading CONFIG '%s'", path);
	refusal->error = guarded_refused(error) ? 0 : error;
	return because(refusal, "%s", error == EFBIG ? "it is larger than 1 MiB" : guarded_why(error));
}

static json_t *load_document(const char *path, __u64 wait_ns, struct refusal *refusal)
{
	json_error_t error;
	json_t *document =
		json_fd_read(copied_open(path, CONFIG_MOST, wait_ns), JSON_REJECT_DUPLICATES, &error);

	if (document)
		return document;
	if (errno) {
		refuse_file(refusal, path, errno);
		return NULL;
	}
	refuse(refusal, STATUS_USAGE, "CONFIG '%s', line %d, column %d", path, error.line, error.column);
	because(refusal, "it is not JSON: %.300s", error.text);
	return NULL;
}

/* --- variables -------------------------------------------------------------------------------- */

/* Replaces each ${NAME} in a text by the value of the environment variable. Returns NULL with the refusal if
 * one is not set. */
static char *expand(const char *text, const char *pointer, struct refusal *refusal)
{
	char *expanded = NULL;
	size_t size;
	FILE *file = xopen_memstream(&expanded, &size);

	for (const char *at = text; *at; at++) {
		size_t length = strncmp(at, "${", 2) ? 0 : strcspn(at + 2, "}");
		char *name;
		const char *value;

		if (!strncmp(at, "$${", 3)) {
			fputc('$', file);
			at++;
			continue;
		}
		if (!length || at[2 + length] != '}') {
			fputc(*at, file);
			continue;
		}
		name = xasprintf("%.*s", (int)length, at + 2);
		value = getenv(name);
		if (!value) {
			xclose_memstream(file);
			free(expanded);
			refuse_at(refusal, pointer);
			because(refusal, "the environment has no variable %.100s", name);
			instead(refusal, "set it, or write $${%.100s} for the text itself", name);
			free(name);
			return NULL;
		}
		free(name);
		fputs(value, file);
		at += length + 2;
	}
	xclose_memstream(file);
	return expanded;
}

static json_t *expanded_text(const json_t *value, const char *pointer, struct refusal *refusal)
{
	char *text = expand(json_string_value(value), pointer, refusal);
	json_t *expanded = text ? json_string(text) : NULL;

	if (text && !expanded) {
		refuse_at(refusal, pointer);
		because(refusal, "with its variables it is not UTF-8");
	}
	free(text);
	return expanded;
}

/* Returns the text with each "${" written so that expand() gives it back. */
static json_t *escaped_text(const json_t *value, const char *pointer, struct refusal *refusal)
{
	const char *text = json_string_value(value);
	char *escaped = NULL;
	size_t size;
	FILE *file = xopen_memstream(&escaped, &size);
	json_t *result;

	for (const char *at = text; *at; at++) {
		if (!strncmp(at, "${", 2))
			fputc('$', file);
		fputc(*at, file);
	}
	xclose_memstream(file);
	result = json_string(escaped);
	free(escaped);
	return result;
}

/* A number with a fraction of zero is a whole one, by JSON Schema and by what fills in templates: Helm writes
 * a million as 1e+06. */
static json_t *whole_number(json_t *value)
{
	double number = json_number_value(value);

	if (json_is_real(value) && number > -WHOLE_MOST && number < WHOLE_MOST &&
	    number == (double)(json_int_t)number)
		return json_integer((json_int_t)number);
	return json_incref(value);
}

typedef json_t *(*text_fn)(const json_t *value, const char *pointer, struct refusal *refusal);

/* Returns a new reference to the value with what `other` makes of each text, and with whole numbers as such;
 * NULL with its refusal. */
static json_t *with_texts(json_t *value, text_fn other, const char *pointer, struct refusal *refusal)
{
	json_t *result, *element, *made;
	char path[POINTER_MOST], number[24];
	const char *member;
	size_t i;

	if (json_is_string(value))
		return other(value, pointer, refusal);
	if (json_is_object(value)) {
		result = json_object();
		json_object_foreach(value, member, element) {
			json_pointer_below(path, sizeof(path), pointer, member);
			made = with_texts(element, other, path, refusal);
			if (json_object_set_new(result, member, made))
				goto refused;
		}
		return result;
	}
	if (!json_is_array(value))
		return whole_number(value);
	result = json_array();
	json_array_foreach(value, i, element) {
		snprintf(number, sizeof(number), "%zu", i);
		json_pointer_below(path, sizeof(path), pointer, number);
		made = with_texts(element, other, path, refusal);
		if (json_array_append_new(result, made))
			goto refused;
	}
	return result;
refused:
	json_decref(result);
	return NULL;
}

/* --- activities ------------------------------------------------------------------------------- */

static void add_row(const struct option_row *row, void *context)
{
	char name[64];

	if (!row->line_only && row->help)
		json_object_set_new(context, option_member(row, name, sizeof(name)), option_schema(row));
}

static const char *const own_members[] = {"name", "command", "retry"};

static bool is_own(const char *member)
{
	for (size_t i = 0; i < ARRAY_SIZE(own_members); i++)
		if (!strcmp(own_members[i], member))
			return true;
	return false;
}

static int refuse_member(const struct command *command, const char *pointer, const char *member,
			 struct refusal *refusal)
{
	char path[POINTER_MOST], near[200];
	json_t *rows = json_object(), *ignored;
	struct nearest nearest;
	const char *name;

	command_each_option(command, add_row, rows);
	nearest_begin(&nearest, member, 3);
	for (size_t i = 0; i < ARRAY_SIZE(own_members); i++)
		nearest_offer(&nearest, own_members[i]);
	json_object_foreach(rows, name, ignored)
		nearest_offer(&nearest, name);
	nearest_print(&nearest, near, sizeof(near));
	json_decref(rows);
	return refuse_unknown(refusal, json_pointer_below(path, sizeof(path), pointer, member), near);
}

static int take_member(struct options *options, const char *pointer, const char *member, const json_t *value,
		       struct refusal *refusal)
{
	const struct option_row *row = option_of_member(options->command, member);

	if (!row)
		return refuse_member(options->command, pointer, member, refusal);
	return option_take(options, row, value, refusal) ? is_at(refusal, pointer, member) : 0;
}

static bool is_activity(const struct request *request, const char *name)
{
	for (size_t i = 0; name && i < request->nr_entries; i++)
		if (!strcmp(request->entries[i]->name, name))
			return true;
	return false;
}

/* Whether an output may name this activity, as far as is known while mistakes are passed over. */
static bool may_be_activity(const struct request *request, const char *name)
{
	return is_activity(request, name) ||
	       request->nr_entries < json_array_size(json_object_get(request->document, "activities"));
}

static int refuse_second(struct refusal *refusal, const char *pointer, const char *name)
{
	char path[POINTER_MOST];

	refuse_at(refusal, json_pointer_below(path, sizeof(path), pointer, "name"));
	because(refusal, "another activity has the name '%s'", name);
	return instead(refusal, "give each a name of its own");
}

/* Sets defaults for what was not given, if the command has the option. */
static void add_defaults(struct options *options)
{
	const struct command *command = options->command;

	if (!options->interval_ms)
		options->interval_ms = DEFAULT_INTERVAL_MS;
	options->usual_frequency = DEFAULT_FREQUENCY;
	if (!options->top && option_of_member(command, "top"))
		options->top = DEFAULT_TOP;
}

static bool has_target(const struct options *options)
{
	return options->pids || options->tids || options->cgroups || options->each_cgroup ||
	       options->containers || options->cpus || options->all_cpus;
}

static int check_target(const struct options *options, const char *pointer, struct refusal *refusal)
{
	if (has_target(options) || options->nr_rest)
		return 0;
	refuse_at(refusal, pointer);
	because(refusal, "it has no target, and no COMMAND was given");
	return instead(refusal, "add \"all_cpus\": true, \"pid\", \"tid\", \"cgroup\", \"container\" or "
				"\"cpu\"; or: nhmtap run CONFIG -- COMMAND");
}

static int take_activity(struct request *request, json_t *value, const char *pointer, struct refusal *refusal)
{
	const struct command *command = command_find(string_of(value, "command"));
	const char *name = string_of(value, "name"), *member;
	struct asked *asked;
	json_t *element;

	if (is_activity(request, name))
		return refuse_second(refusal, pointer, name);
	asked = xcalloc(1, sizeof(*asked));
	asked->place = request->nr_entries;
	asked->name = xstrdup(name);
	asked->value = json_incref(value);
	asked->retry = json_is_true(json_object_get(value, "retry"));
	options_begin(&asked->options, command);
	request->entries[request->nr_entries++] = asked;
	json_object_foreach(value, member, element)
		if (!is_own(member) && take_member(&asked->options, pointer, member, element, refusal) &&
		    request_pass(request, refusal))
			return -1;
	add_defaults(&asked->options);
	if (!has_target(&asked->options) && request->command) {
		asked->options.rest = request->command;
		while (request->command[asked->options.nr_rest])
			asked->options.nr_rest++;
	}
	/* --control belongs to the session; this tells --delay -1 that there is one. */
	asked->options.control = request->control ? "control" : NULL;
	return check_target(&asked->options, pointer, refusal);
}

/* Whether an activity has what the others of its members depend on. If not, check_form() has passed it over.
 */
static bool is_formed(const json_t *activity)
{
	const char *command = string_of(activity, "command");

	return command && command_find(command) && command_find(command)->activity &&
	       string_of(activity, "name");
}

static int take_activities(struct request *request, const json_t *list, struct refusal *refusal)
{
	json_t *value;
	char pointer[40];
	size_t i;

	request->entries = xcalloc(json_array_size(list), sizeof(*request->entries));
	json_array_foreach(list, i, value) {
		snprintf(pointer, sizeof(pointer), "/activities/%zu", i);
		if (!is_formed(value))
			continue;
		if (take_activity(request, value, pointer, refusal) && request_pass(request, refusal))
			return -1;
	}
	return 0;
}

/* --- outputs ---------------------------------------------------------------------------------- */

static bool is_type(const struct request *request, const char *name)
{
	char schema[80];

	snprintf(schema, sizeof(schema), "%.60s.schema.json", name ? name : "");
	return name && embedded_find(schema).name && strcmp(name, "common") && strcmp(name, "config");
}

static int check_names(const struct request *request, const json_t *list, const char *pointer,
		       bool (*knows)(const struct request *request, const char *name), const char *why,
		       struct refusal *refusal)
{
	char path[POINTER_MOST + 24];
	json_t *name;
	size_t i;

	json_array_foreach(list, i, name)
		if (!knows(request, json_string_value(name))) {
			snprintf(path, sizeof(path), "%s/%zu", pointer, i);
			refuse_at(refusal, path);
			return because(refusal, "%s", why);
		}
	return 0;
}

/* Whether an activity's records go to an output, of this format (NULL: any). */
static bool is_of_output(const struct asked *asked, const struct place_of_output *output,
			 const struct format *format)
{
	return (!output->activities || has_text(output->activities, asked->name)) &&
	       (!format || format_is_of(format, asked->options.command->name));
}

/* Refuses a format that none of the output's activities writes. An activity that was refused may be one. */
static int check_format(const struct request *request, const struct place_of_output *output,
			struct refusal *refusal)
{
	const struct format *format = format_find(output->format, NULL, refusal);
	bool fits = request->partial;
	char commands[80] = "";

	if (!format)
		return -1;
	for (size_t i = 0; i < request->nr_entries && !fits; i++)
		fits = is_of_output(request->entries[i], output, format);
	if (fits)
		return 0;
	refuse(refusal, STATUS_USAGE, "option --format '%s'", format->name);
	list_append_all(commands, sizeof(commands), format->commands);
	because(refusal, "it is for %s, and no activity of this output is one of them", commands);
	return instead(refusal, "add one, or choose another format");
}

/* The types of the records that the session itself writes. */
#define SESSION_RECORDS "start,end,error,warning,gap,heartbeat,hotplug,reload,target,process_context"

/* Whether some of the output's activities writes records of this type. */
static bool is_measured(const struct request *request, const struct place_of_output *output,
			const struct format *format, const char *type)
{
	for (size_t i = 0; i < request->nr_entries; i++) {
		const struct asked *asked = request->entries[i];

		if (is_of_output(asked, output, format) &&
		    list_has(asked->options.command->activity->records, type))
			return true;
	}
	return false;
}

/* Appends the types of the records that the output's activities write. */
static void add_measured(const struct request *request, const struct place_of_output *output,
			 const struct format *format, char *known, size_t size)
{
	json_t *types = json_array(), *type;
	size_t i, length;

	for (i = 0; i < request->nr_entries; i++) {
		const struct asked *asked = request->entries[i];
		const char *records = asked->options.command->activity->records;

		for (const char *at = NULL;
		     is_of_output(asked, output, format) && (at = list_next(records, at, &length));) {
			type = json_stringn(at, length);
			if (!has_text(types, json_string_value(type)))
				list_append(known, size, json_string_value(type));
			json_array_append_new(types, type);
		}
	}
	json_decref(types);
}

/* Refuses types of records that the output never gets. An activity that was refused may write them. */
static int check_types(const struct request *request, const struct place_of_output *output,
		       const char *pointer, struct refusal *refusal)
{
	const struct format *format = output->format ? format_find(output->format, NULL, refusal) : NULL;
	/* The formats that take the session's records, too. */
	bool takes_own = !format || format->lines || format->people || format->series, any = takes_own;
	char path[POINTER_MOST + 32], known[300] = "";
	const char *type;
	json_t *name;
	size_t i;

	if (!output->types || request->partial)
		return 0;
	add_measured(request, output, format, known, sizeof(known));
	json_array_foreach(output->types, i, name) {
		type = json_string_value(name);
		if (is_measured(request, output, format, type)) {
			any = true;
			continue;
		}
		if (list_has(SESSION_RECORDS, type))
			continue;
		snprintf(path, sizeof(path), "%s/types/%zu", pointer, i);
		refuse_at(refusal, path);
		because(refusal, "no activity of this output writes records of this type");
		list_append_all(known, sizeof(known), SESSION_RECORDS);
		return instead(refusal, "types here: %s", known);
	}
	if (any)
		return 0;
	snprintf(path, sizeof(path), "%s/types", pointer);
	refuse_at(refusal, path);
	because(refusal, "%s writes none of these, which are the session's own", format->name);
	return instead(refusal, "add one of %s", known);
}

/* Refuses several activities for an output whose readers would add up what they have. Where each interval has
 * a file of its own, that is of one activity; a server adds up what comes to one URL. */
static int check_sources(const struct request *request, const struct place_of_output *output,
			 const char *pointer, struct refusal *refusal)
{
	const struct format *format = format_find(output->format, NULL, refusal);
	const char *first = NULL;

	if (!format->one_event || (output->path && documents_is_pattern(output->path)))
		return 0;
	for (size_t i = 0; i < request->nr_entries; i++) {
		const struct asked *asked = request->entries[i];

		if (!is_of_output(asked, output, format))
			continue;
		if (first) {
			refuse_at(refusal, pointer);
			because(refusal,
				"'%.64s' and '%.64s' write to it, and %s does not say of which activity, "
				"or event, a stack is",
				first, asked->name, format->name);
			return instead(refusal, "give each an output of its own, which names it in "
						"\"activities\"");
		}
		first = asked->name;
	}
	return 0;
}

static int take_output(struct request *request, json_t *value, const char *pointer, struct refusal *refusal)
{
	struct place_of_output *output = &request->outputs[request->nr_outputs++];
	const json_t *queue = json_object_get(value, "queue_bytes"), *tls = json_object_get(value, "tls");
	char path[POINTER_MOST];

	output->append = true;
	output->document = request->document;
	output->activities = json_object_get(value, "activities");
	output->types = json_object_get(value, "types");
	output->format = string_of(value, "format");
	output->path = string_of(value, "path");
	output->queue_bytes = queue ? json_integer_value(queue) : QUEUE_BYTES;
	output->series = json_integer_value(json_object_get(value, "series"));
	output->cumulative = request_cumulative(string_of(value, "temporality"));
	output->access = (struct push_access){{string_of(tls, "ca_file"), string_of(tls, "cert_file"),
					       string_of(tls, "key_file"), string_of(value, "headers_file")},
					      json_is_true(json_object_get(tls, "insecure_skip_verify"))};
	if (check_names(request, output->activities,
			json_pointer_below(path, sizeof(path), pointer, "activities"), may_be_activity,
			"no activity has this name", refusal) ||
	    check_names(request, output->types, json_pointer_below(path, sizeof(path), pointer, "types"),
			is_type, "there is no such type of records", refusal))
		return -1;
	if (output->path && !strcmp(output->path, "-"))
		output->path = NULL;
	if (output->format && check_format(request, output, refusal))
		return is_at(refusal, pointer, "format");
	if (uses_check_members(value, output, pointer, refusal) ||
	    check_types(request, output, pointer, refusal))
		return -1;
	return output->format ? check_sources(request, output, pointer, refusal) : 0;
}

static int take_outputs(struct request *request, const json_t *list, struct refusal *refusal)
{
	json_t *value;
	char pointer[40];
	size_t i;

	request->outputs = xcalloc(list ? json_array_size(list) : 1, sizeof(*request->outputs));
	request->partial = request->nr_found;
	if (!list)
		request->outputs[request->nr_outputs++].queue_bytes = QUEUE_BYTES;
	json_array_foreach(list, i, value) {
		snprintf(pointer, sizeof(pointer), "/outputs/%zu", i);
		if (take_output(request, value, pointer, refusal) && request_pass(request, refusal))
			return -1;
	}
	return 0;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int take_limits(struct request *request, const json_t *limits, struct refusal *refusal)
{
	const char *memory = string_of(limits, "memory"), *share = string_of(limits, "cpu_share");

	request->names_bytes = json_integer_value(json_object_get(limits, "names_bytes"));
	request->memory = memory ? limits_size(memory) : 0;
	request->cpu_share = share ? share_of_text(share) : 0;
	if (memory && !request->memory)
		return refuse_kind(refusal, "/limits/memory", "a size as a text from 1M on, with K, M or G");
	if (share && request->cpu_share <= 0)
		return refuse_kind(refusal, "/limits/cpu_share",
				   "a share of one CPU as a text, from 0.01% to 1000%");
	return 0;
}

/* The commands that an activity may have, for the schema. */
static json_t *activity_names(void)
{
	json_t *names = json_array();
	const struct command *command;

	for (size_t i = 0; (command = command_at(i)) && command->activity; i++)
		json_array_append_new(names, json_string(command->name));
	return names;
}

/* Checks what the schema says: all but the members that the rows of options know. */
static int check_form(struct request *request, struct refusal *refusal)
{
	struct json_schema *schema = json_schema_open("config.schema.json");
	json_t *command = NULL, *passed = json_object();
	struct json_fault fault;
	int err = 0;

	json_unpack(json_schema_document(schema), "{s:{s:{s:{s:o}}}}", "$defs", "activity", "properties",
		    "command", &command);
	json_object_set_new(command, "enum", activity_names());
	while (!err && json_schema_check(schema, NULL, request->document, passed, &fault)) {
		refuse_fault(refusal, &fault);
		err = request_pass(request, refusal);
		json_object_set_new(passed, fault.pointer, json_true());
	}
	json_decref(passed);
	json_schema_close(schema);
	return err;
}

static int judge_request(struct request *request, struct refusal *refusal)
{
	const json_t *document = request->document;

	if (check_form(request, refusal))
		return -1;
	request->control = string_of(document, "control");
	request->listen = string_of(document, "listen");
	request->events_dir = string_of(document, "events_dir");
	request->pmu_events = string_of(document, "pmu_events");
	request->heartbeat_s = json_integer_value(json_object_get(document, "heartbeat_s"));
	request->resource = json_object_get(document, "resource");
	if (take_activities(request, json_object_get(document, "activities"), refusal) ||
	    take_outputs(request, json_object_get(document, "outputs"), refusal) ||
	    (take_limits(request, json_object_get(document, "limits"), refusal) &&
	     request_pass(request, refusal)))
		return -1;
	if (!request->nr_found)
		return 0;
	*refusal = request->found[--request->nr_found];
	return -1;
}

static int read_within(struct request *request, const char *path, char **command, bool check, __u64 wait_ns,
		       struct refusal *refusal)
{
	json_t *document = load_document(path, wait_ns, refusal);

	*request = (struct request){.config = path, .command = command, .check = check, .host_root = ""};
	if (!document)
		return -1;
	request->document = with_texts(document, expanded_text, "", refusal);
	json_decref(document);
	return request->document ? judge_request(request, refusal) : -1;
}

/* A member that only one has, or that differs, and that is fixed for a session's life; NULL: none. */
static const char *changed(const json_t *document, const json_t *other)
{
	const char *member;
	json_t *value;

	json_object_foreach((json_t *)document, member, value)
		if (strcmp(member, "activities") && strcmp(member, "outputs") &&
		    !json_equal(value, json_object_get(other, member)))
			return member;
	return NULL;
}

/* How long the file system may take at the start, and while a session is running. */
#define START_NS 5000000000ULL
#define AGAIN_NS 600000000ULL

int config_read(struct request *request, const char *path, char **command, bool check,
		struct refusal *refusal)
{
	return read_within(request, path, command, check, START_NS, refusal);
}

/* Refuses changes of what is fixed for a session's life. */
static int check_same(const struct request *request, const struct request *before, struct refusal *refusal)
{
	const char *member =
		changed(request->document, before->document) ?: changed(before->document, request->document);
	char path[POINTER_MOST];

	if (!member)
		return 0;
	refuse_at(refusal, json_pointer_below(path, sizeof(path), "", member));
	because(refusal, "it can't change while the session goes on");
	return instead(refusal, "restart nhmtap, or restore the previous entry");
}

int config_read_again(struct request *request, const struct request *before, struct refusal *refusal)
{
	return read_within(request, before->config, before->command, false, AGAIN_NS, refusal) ||
			       check_same(request, before, refusal)
		       ? -1
		       : 0;
}

json_t *config_escaped(const struct request *request)
{
	return with_texts(request->document, escaped_text, "", NULL);
}

/* --- the schema ------------------------------------------------------------------------------- */

/* Adds the names of the formats. A variable may stand for one. */
static void add_formats(json_t *output)
{
	json_t *member = json_object_get(json_object_get(output, "properties"), "format"),
	       *names = json_array();
	const struct format *format;

	for (size_t i = 0; (format = format_at(i)); i++)
		json_array_append_new(names, json_string(format->name));
	json_object_set_new(member, "anyOf", json_pack("[{s:o}, {s:s}]", "enum", names, "pattern", "[$][{]"));
}

void config_complete_schema(json_t *frame)
{
	json_t *definitions = json_object_get(frame, "$defs"),
	       *activity = json_object_get(definitions, "activity"),
	       *output = json_object_get(definitions, "output");
	json_t *cases = json_array();
	const struct command *command;

	for (size_t i = 0; (command = command_at(i)) && command->activity; i++) {
		json_t *properties = json_deep_copy(json_object_get(activity, "properties"));

		json_object_set_new(
			properties, "command",
			json_pack("{s:s, s:s}", "const", command->name, "description", command->help));
		command_each_option(command, add_row, properties);
		json_array_append_new(
			cases, json_pack("{s:o, s:b}", "properties", properties, "additionalProperties", 0));
	}
	json_object_set_new(activity, "oneOf", cases);
	json_object_set_new(output, "allOf", uses_schema());
	add_formats(output);
}
