// SPDX-License-Identifier: GPL-2.0-only
#include "run/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/embedded.h"
#include "base/guarded.h"
#include "base/json_file.h"
#include "base/list.h"
#include "base/memory.h"
#include "option/command.h"
#include "run/resource.h"
#include "session/limits.h"
#include "session/share_control.h"
#include "tables/names.h"

#define ACTIVITIES_MOST 64
#define OUTPUTS_MOST	16
#define NAME_MOST	64

/* Defaults, for long runs, of what CONFIG does not say. */
#define DEFAULT_INTERVAL_MS 10000
#define DEFAULT_FREQUENCY   99
#define DEFAULT_TOP	    50

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

/* Appends a member to a JSON pointer. '~' and '/' in its name are escaped: RFC 6901. */
static const char *below(char *buffer, size_t size, const char *pointer, const char *member)
{
	size_t used = snprintf(buffer, size, "%s/", pointer);

	for (; *member && used + 3 < size; member++) {
		bool escaped = *member == '~' || *member == '/';

		if (escaped)
			buffer[used++] = '~';
		buffer[used++] = !escaped ? *member : *member == '~' ? '0' : '1';
	}
	buffer[used < size ? used : size - 1] = '\0';
	return buffer;
}

#define POINTER_MOST 400

/* Adds the place in CONFIG to a refusal that already has its reason. */
static int is_at(struct refusal *refusal, const char *pointer, const char *member)
{
	char path[POINTER_MOST];

	snprintf(refusal->asked, sizeof(refusal->asked), "CONFIG, %s",
		 below(path, sizeof(path), pointer, member));
	return -1;
}

/* Refuses a member that is not in the list, and suggests similar names. */
static int refuse_unknown(const char *pointer, const char *member, const char *const *known, size_t nr,
			  struct refusal *refusal)
{
	struct nearest nearest;
	char path[POINTER_MOST], near[400];

	nearest_begin(&nearest, member, 3);
	for (size_t i = 0; i < nr; i++)
		nearest_offer(&nearest, known[i]);
	refuse_at(refusal, below(path, sizeof(path), pointer, member));
	because(refusal, "there is no such member");
	return instead(refusal,
		       nearest_print(&nearest, near, sizeof(near))
			       ? "did you mean %s? nhmtap schema config shows all"
			       : "nhmtap schema config shows all%s",
		       near);
}

/* --- the file --------------------------------------------------------------------------------- */

static int refuse_file(struct refusal *refusal, const char *path, int error)
{
	refuse(refusal, STATUS_USAGE, "reading CONFIG '%s'", path);
	refusal->error = guarded_refused(error) ? 0 : error;
	return because(refusal, "%s", error == EFBIG ? "it is larger than 1 MiB" : guarded_why(error));
}

static json_t *load(const char *path, struct refusal *refusal)
{
	json_error_t error;
	json_t *document = json_file_read(path, CONFIG_MOST, JSON_REJECT_DUPLICATES, &error);

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

/* Returns a new reference to the value with all texts expanded; NULL with the refusal. */
static json_t *expand_all(json_t *value, const char *pointer, struct refusal *refusal)
{
	json_t *result, *element, *expanded;
	char path[POINTER_MOST], number[24];
	const char *member;
	size_t i;

	if (json_is_string(value))
		return expanded_text(value, pointer, refusal);
	if (json_is_object(value)) {
		result = json_object();
		json_object_foreach(value, member, element) {
			expanded = expand_all(element, below(path, sizeof(path), pointer, member), refusal);
			if (json_object_set_new(result, member, expanded))
				goto refused;
		}
		return result;
	}
	if (!json_is_array(value))
		return json_incref(value);
	result = json_array();
	json_array_foreach(value, i, element) {
		snprintf(number, sizeof(number), "%zu", i);
		expanded = expand_all(element, below(path, sizeof(path), pointer, number), refusal);
		if (json_array_append_new(result, expanded))
			goto refused;
	}
	return result;
refused:
	json_decref(result);
	return NULL;
}

/* --- activities ------------------------------------------------------------------------------- */

static const char *const own_members[] = {"name", "command", "retry"};
#define OWN_MEMBERS ARRAY_SIZE(own_members)

struct known {
	char texts[96][40];
	const char *names[96];
	size_t nr;
};

static void add_known(const struct option_row *row, void *context)
{
	struct known *known = context;
	char name[40];

	if (row->line_only || !row->help || known->nr == 96)
		return;
	snprintf(known->texts[known->nr], sizeof(known->texts[0]), "%s",
		 option_member(row, name, sizeof(name)));
	known->names[known->nr] = known->texts[known->nr];
	known->nr++;
}

static int refuse_member(const struct command *command, const char *pointer, const char *member,
			 struct refusal *refusal)
{
	struct known known = {.nr = 0};

	for (; known.nr < OWN_MEMBERS; known.nr++)
		known.names[known.nr] = own_members[known.nr];
	options_each(command, add_known, &known);
	return refuse_unknown(pointer, member, known.names, known.nr, refusal);
}

static bool is_own(const char *member)
{
	for (size_t i = 0; i < OWN_MEMBERS; i++)
		if (!strcmp(own_members[i], member))
			return true;
	return false;
}

static int take_member(struct options *options, const char *pointer, const char *member, const json_t *value,
		       struct refusal *refusal)
{
	const struct option_row *row = option_of_member(options->command, member);

	if (!row)
		return refuse_member(options->command, pointer, member, refusal);
	return option_take(options, row, value, refusal) ? is_at(refusal, pointer, member) : 0;
}

static bool is_name(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	return length && length <= NAME_MOST && !name[length] && strcmp(name, "session");
}

static int check_name(const struct request *request, const json_t *value, const char *pointer,
		      struct refusal *refusal)
{
	const char *name = json_string_value(value);
	char path[POINTER_MOST];

	below(path, sizeof(path), pointer, "name");
	if (!name || !is_name(name)) {
		refuse_at(refusal, path);
		because(refusal, "a name is 1 to 64 letters, digits, '_', '.' and '-'; 'session' is taken");
		return instead(refusal, "name the activity, for example \"name\": \"cpu\"");
	}
	for (size_t i = 0; i < request->nr_entries; i++)
		if (!strcmp(request->entries[i]->name, name)) {
			refuse_at(refusal, path);
			because(refusal, "another activity has the name '%s'", name);
			return instead(refusal, "give each a name of its own");
		}
	return 0;
}

static const struct command *command_of(const json_t *value, const char *pointer, struct refusal *refusal)
{
	const char *name = json_string_value(value);
	const struct command *command = name ? command_find(name) : NULL, *known;
	char path[POINTER_MOST], list[200] = "";

	if (command && command->activity)
		return command;
	for (size_t i = 0; (known = command_at(i)) && known->activity; i++)
		list_append(list, sizeof(list), known->name);
	refuse_at(refusal, below(path, sizeof(path), pointer, "command"));
	because(refusal, name ? "there is no activity '%.100s'" : "it is missing, or no text", name);
	instead(refusal, "activities: %s", list);
	return NULL;
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
	json_t *retry = json_object_get(value, "retry"), *element;
	const struct command *command;
	struct asked *asked;
	char path[POINTER_MOST];
	const char *member;

	if (!json_is_object(value))
		return refuse_kind(refusal, pointer, "an object");
	if (check_name(request, json_object_get(value, "name"), pointer, refusal))
		return -1;
	command = command_of(json_object_get(value, "command"), pointer, refusal);
	if (!command)
		return -1;
	if (retry && !json_is_boolean(retry))
		return refuse_kind(refusal, below(path, sizeof(path), pointer, "retry"), "true or false");
	asked = xcalloc(1, sizeof(*asked));
	asked->place = request->nr_entries;
	asked->name = xstrdup(json_string_value(json_object_get(value, "name")));
	asked->value = json_incref(value);
	asked->retry = json_is_true(retry);
	options_begin(&asked->options, command);
	request->entries[request->nr_entries++] = asked;
	json_object_foreach(value, member, element)
		if (!is_own(member) && take_member(&asked->options, pointer, member, element, refusal))
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

static int take_activities(struct request *request, const json_t *list, struct refusal *refusal)
{
	json_t *value;
	char pointer[40];
	size_t i;

	if (!json_is_array(list) || !json_array_size(list) || json_array_size(list) > ACTIVITIES_MOST)
		return refuse_kind(refusal, "/activities", "a list of 1 to 64 activities");
	request->entries = xcalloc(json_array_size(list), sizeof(*request->entries));
	json_array_foreach(list, i, value) {
		snprintf(pointer, sizeof(pointer), "/activities/%zu", i);
		if (take_activity(request, value, pointer, refusal))
			return -1;
	}
	return 0;
}

/* --- outputs ---------------------------------------------------------------------------------- */

static bool is_activity(const struct request *request, const char *name)
{
	for (size_t i = 0; name && i < request->nr_entries; i++)
		if (!strcmp(request->entries[i]->name, name))
			return true;
	return false;
}

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

	if (list && (!json_is_array(list) || !json_array_size(list)))
		return refuse_kind(refusal, pointer, "a list of names");
	json_array_foreach(list, i, name)
		if (!knows(request, json_string_value(name))) {
			snprintf(path, sizeof(path), "%s/%zu", pointer, i);
			refuse_at(refusal, path);
			return because(refusal, "%s", why);
		}
	return 0;
}

static int text_member(const json_t *object, const char *pointer, const char *member, const char **text,
		       struct refusal *refusal)
{
	const json_t *value = json_object_get(object, member);
	char path[POINTER_MOST];

	*text = json_string_value(value);
	return value && !*text ? refuse_kind(refusal, below(path, sizeof(path), pointer, member), "a text")
			       : 0;
}

#define QUEUE_LEAST 8192

static int take_queue(struct place_of_output *output, const json_t *value, const char *pointer,
		      struct refusal *refusal)
{
	char path[POINTER_MOST];

	output->queue_bytes = value ? json_integer_value(value) : QUEUE_BYTES;
	return value && json_integer_value(value) < QUEUE_LEAST
		       ? refuse_kind(refusal, below(path, sizeof(path), pointer, "queue_bytes"),
				     "a whole number from 8192 on, bytes")
		       : 0;
}

static int take_series(struct place_of_output *output, const json_t *value, const char *pointer,
		       struct refusal *refusal)
{
	char path[POINTER_MOST];

	output->series = json_integer_value(value);
	return value && json_integer_value(value) < 1
		       ? refuse_kind(refusal, below(path, sizeof(path), pointer, "series"),
				     "a whole number from 1 on")
		       : 0;
}

static int take_output(struct request *request, json_t *value, const char *pointer, struct refusal *refusal)
{
	static const char *const known[] = {"format", "path", "activities", "types", "queue_bytes", "series"};
	const size_t nr = ARRAY_SIZE(known);
	struct place_of_output *output = &request->outputs[request->nr_outputs++];
	char path[POINTER_MOST];
	json_t *element;
	const char *member;

	if (!json_is_object(value))
		return refuse_kind(refusal, pointer, "an object");
	json_object_foreach(value, member, element) {
		size_t i = 0;

		while (i < nr && strcmp(known[i], member))
			i++;
		if (i == nr)
			return refuse_unknown(pointer, member, known, nr, refusal);
	}
	output->append = true;
	output->document = request->document;
	output->activities = json_object_get(value, "activities");
	output->types = json_object_get(value, "types");
	if (text_member(value, pointer, "format", &output->format, refusal) ||
	    text_member(value, pointer, "path", &output->path, refusal) ||
	    take_queue(output, json_object_get(value, "queue_bytes"), pointer, refusal) ||
	    take_series(output, json_object_get(value, "series"), pointer, refusal) ||
	    check_names(request, output->activities, below(path, sizeof(path), pointer, "activities"),
			is_activity, "no activity has this name", refusal) ||
	    check_names(request, output->types, below(path, sizeof(path), pointer, "types"), is_type,
			"there is no such type of records", refusal))
		return -1;
	if (output->path && !strcmp(output->path, "-"))
		output->path = NULL;
	if (!output->format || format_find(output->format, NULL, refusal))
		return 0;
	return is_at(refusal, pointer, "format");
}

static int take_outputs(struct request *request, const json_t *list, struct refusal *refusal)
{
	json_t *value;
	char pointer[40];
	size_t i;

	if (list && (!json_is_array(list) || !json_array_size(list) || json_array_size(list) > OUTPUTS_MOST))
		return refuse_kind(refusal, "/outputs", "a list of 1 to 16 outputs");
	request->outputs = xcalloc(list ? json_array_size(list) : 1, sizeof(*request->outputs));
	if (!list)
		request->outputs[request->nr_outputs++].queue_bytes = QUEUE_BYTES;
	json_array_foreach(list, i, value) {
		snprintf(pointer, sizeof(pointer), "/outputs/%zu", i);
		if (take_output(request, value, pointer, refusal))
			return -1;
	}
	return 0;
}

/* --- the whole -------------------------------------------------------------------------------- */

static bool is_attribute(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-");

	return length && length <= 100 && !name[length] && name[0] >= 'a' && name[0] <= 'z';
}

static int take_resource(struct request *request, const json_t *resource, struct refusal *refusal)
{
	char path[POINTER_MOST];
	const char *name;
	json_t *value;

	if (resource && !json_is_object(resource))
		return refuse_kind(refusal, "/resource", "an object of texts");
	json_object_foreach((json_t *)resource, name, value) {
		below(path, sizeof(path), "/resource", name);
		if (!json_is_string(value))
			return refuse_kind(refusal, path, "a text");
		if (is_attribute(name) && !resource_is_own(name))
			continue;
		refuse_at(refusal, path);
		return because(
			refusal, "%s",
			resource_is_own(name)
				? "nhmtap finds this attribute out itself"
				: "an attribute's name is lower-case letters, digits, '_', '.' and '-'");
	}
	request->resource = resource;
	return 0;
}

static int take_limits(struct request *request, const json_t *limits, struct refusal *refusal)
{
	static const char *const known[] = {"names_bytes", "memory", "cpu_share"};
	const char *member;
	json_t *value;

	if (limits && !json_is_object(limits))
		return refuse_kind(refusal, "/limits", "an object");
	json_object_foreach((json_t *)limits, member, value) {
		if (!strcmp(member, known[1])) {
			request->memory = json_is_string(value) ? limits_size(json_string_value(value)) : 0;
			if (!request->memory)
				return refuse_kind(refusal, "/limits/memory",
						   "a size as a text from 1M on, with K, M or G");
			continue;
		}
		if (!strcmp(member, known[2])) {
			request->cpu_share =
				json_is_string(value) ? share_of_text(json_string_value(value)) : 0;
			if (request->cpu_share <= 0)
				return refuse_kind(refusal, "/limits/cpu_share",
						   "a share of one CPU as a text, from 0.01% to 1000%");
			continue;
		}
		if (strcmp(member, known[0]))
			return refuse_unknown("/limits", member, known, 3, refusal);
		if (!json_is_integer(value) || json_integer_value(value) < 1 << 20)
			return refuse_kind(refusal, "/limits/names_bytes",
					   "a whole number from 1048576 on, bytes");
		request->names_bytes = json_integer_value(value);
	}
	return 0;
}

/* At most a day, so that it does not overflow in nanoseconds. */
#define HEARTBEAT_MOST 86400

static int take_heartbeat(struct request *request, const json_t *value, struct refusal *refusal)
{
	if (value && (!json_is_integer(value) || json_integer_value(value) < 1 ||
		      json_integer_value(value) > HEARTBEAT_MOST))
		return refuse_kind(refusal, "/heartbeat_s", "a whole number from 1 to 86400, seconds");
	request->heartbeat_s = value ? json_integer_value(value) : 0;
	return 0;
}

static int check_control(const char *control, struct refusal *refusal)
{
	if (!control || !strncmp(control, "fifo:", 5) || !strncmp(control, "fd:", 3))
		return 0;
	return refuse_kind(refusal, "/control", "fifo:CTL, fifo:CTL,ACK or the same of fd:, descriptors");
}

/* The members of CONFIG. Those from FIRST_FIXED on are fixed for a session's life. */
static const char *const known[] = {"activities", "outputs",	"resource", "limits",	  "control",
				    "events_dir", "pmu_events", "listen",   "heartbeat_s"};
#define FIRST_FIXED 2

static int judge(struct request *request, struct refusal *refusal)
{
	const size_t nr = ARRAY_SIZE(known);
	const json_t *document = request->document;
	const char *member;
	json_t *value;

	if (!json_is_object(document))
		return refuse_kind(refusal, "", "an object");
	json_object_foreach((json_t *)document, member, value) {
		size_t i = 0;

		while (i < nr && strcmp(known[i], member))
			i++;
		if (i == nr)
			return refuse_unknown("", member, known, nr, refusal);
	}
	if (text_member(document, "", "control", &request->control, refusal) ||
	    text_member(document, "", "listen", &request->listen, refusal) ||
	    text_member(document, "", "events_dir", &request->events_dir, refusal) ||
	    text_member(document, "", "pmu_events", &request->pmu_events, refusal) ||
	    take_heartbeat(request, json_object_get(document, "heartbeat_s"), refusal) ||
	    check_control(request->control, refusal))
		return -1;
	return take_activities(request, json_object_get(document, "activities"), refusal) ||
			       take_outputs(request, json_object_get(document, "outputs"), refusal) ||
			       take_resource(request, json_object_get(document, "resource"), refusal) ||
			       take_limits(request, json_object_get(document, "limits"), refusal)
		       ? -1
		       : 0;
}

int config_read(struct request *request, const char *path, char **command, struct refusal *refusal)
{
	json_t *document = load(path, refusal);

	*request = (struct request){.config = path, .command = command, .host_root = ""};
	if (!document)
		return -1;
	request->document = expand_all(document, "", refusal);
	json_decref(document);
	return request->document ? judge(request, refusal) : -1;
}

/* Refuses changes of what is fixed for a session's life. */
static int check_same(const struct request *request, const struct request *before, struct refusal *refusal)
{
	for (size_t i = FIRST_FIXED; i < ARRAY_SIZE(known); i++) {
		const json_t *now = json_object_get(request->document, known[i]);
		const json_t *then = json_object_get(before->document, known[i]);
		char path[POINTER_MOST];

		if (now == then || json_equal(now, then))
			continue;
		refuse_at(refusal, below(path, sizeof(path), "", known[i]));
		because(refusal, "it can't change while the session goes on");
		return instead(refusal, "restart nhmtap, or restore the previous entry");
	}
	return 0;
}

int config_read_again(struct request *request, const struct request *before, struct refusal *refusal)
{
	return config_read(request, before->config, before->command, refusal) ||
			       check_same(request, before, refusal)
		       ? -1
		       : 0;
}

/* --- the schema ------------------------------------------------------------------------------- */

static void add_row(const struct option_row *row, void *context)
{
	char name[64];

	if (!row->line_only && row->help)
		json_object_set_new(context, option_member(row, name, sizeof(name)), option_schema(row));
}

void config_complete_schema(json_t *frame)
{
	json_t *definitions = json_object_get(frame, "$defs"),
	       *activity = json_object_get(definitions, "activity");
	json_t *cases = json_array();
	const struct command *command;

	for (size_t i = 0; (command = command_at(i)) && command->activity; i++) {
		json_t *properties = json_deep_copy(json_object_get(activity, "properties"));

		json_object_set_new(
			properties, "command",
			json_pack("{s:s, s:s}", "const", command->name, "description", command->help));
		options_each(command, add_row, properties);
		json_array_append_new(
			cases, json_pack("{s:o, s:b}", "properties", properties, "additionalProperties", 0));
	}
	json_object_set_new(activity, "oneOf", cases);
}
