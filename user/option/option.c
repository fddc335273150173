// SPDX-License-Identifier: GPL-2.0-only
#include "option/option.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/alternatives.h"
#include "base/memory.h"
#include "base/number.h"
#include "option/command.h"
#include "option/meant.h"

#define ROWS_MOST 64 /* the most rows of a command */

/* --- values ----------------------------------------------------------------------------------- */

static void *place_of(struct options *options, const struct option_row *row)
{
	return (row->own ? (char *)options->own : (char *)options) + row->offset;
}

static int bad_value(const struct option_row *row, const char *argument, struct refusal *refusal)
{
	return refuse(refusal, STATUS_USAGE, "option --%s '%s'", row->name, argument);
}

static int number_of(const struct option_row *row, const char *argument, __u64 *value,
		     struct refusal *refusal)
{
	if (number_whole(argument, value) && *value >= row->least && *value <= row->most)
		return 0;
	bad_value(row, argument, refusal);
	return because(refusal, "it takes a whole number from %llu to %llu", row->least, row->most);
}

void options_join(struct options *options, const char **list, const char *text)
{
	char *joined = xasprintf("%s%s%s", *list ? *list : "", *list ? "," : "", text);

	*xappend(options->joined, options->nr_joined) = joined;
	*list = joined;
}

/* Lists are later parsed into buffers of fixed size. */
#define LIST_MOST 4096

static int join_argument(struct options *options, const struct option_row *row, const char *argument,
			 struct refusal *refusal)
{
	const char **list = place_of(options, row);

	if (strlen(argument) + (*list ? strlen(*list) + 1 : 0) >= LIST_MOST) {
		bad_value(row, "…", refusal);
		return because(refusal, "the list is longer than %d characters", LIST_MOST);
	}
	options_join(options, list, argument);
	return 0;
}

static int add_text(struct options *options, const struct option_row *row, const char *argument,
		    struct refusal *refusal)
{
	struct texts *texts = place_of(options, row);

	if (texts->nr < TEXTS_MOST) {
		texts->list[texts->nr++] = argument;
		return 0;
	}
	bad_value(row, argument, refusal);
	return because(refusal, "it can be given %d times", TEXTS_MOST);
}

static int take_word(struct options *options, const struct option_row *row, const char *argument,
		     struct refusal *refusal)
{
	struct alternatives alternatives;

	for (const char *const *word = row->words; *word; word++)
		if (!strcmp(argument, *word)) {
			*(const char **)place_of(options, row) = *word;
			return 0;
		}
	alternatives_begin(&alternatives, argument, strlen(argument));
	alternatives_offer_all(&alternatives, row->words);
	bad_value(row, argument, refusal);
	because(refusal, "there is no such %s", row->name);
	return alternatives_end(&alternatives, refusal, "it takes one of: %s", alternatives.all);
}

static int take_delay(struct options *options, const struct option_row *row, const char *argument,
		      struct refusal *refusal)
{
	__s64 *delay = place_of(options, row);
	__u64 ms;

	*delay = -1;
	if (!strcmp(argument, "-1"))
		return 0;
	if (number_of(row, argument, &ms, refusal))
		return instead(refusal, "or -1: off, until --control enables it");
	*delay = ms;
	return 0;
}

/* Clocks have nanoseconds, and a monotonic one never comes to more than 2^63 of them. */
#define SECONDS_LEAST 1e-9
#define SECONDS_MOST  1e9

static int take_seconds(struct options *options, const struct option_row *row, const char *argument,
			struct refusal *refusal)
{
	double *seconds = place_of(options, row);
	const char *end;

	if (number_decimal(argument, seconds, &end) && !*end && *seconds >= SECONDS_LEAST &&
	    *seconds <= SECONDS_MOST)
		return 0;
	bad_value(row, argument, refusal);
	because(refusal, "it takes seconds, more than 0 (0.000000001) and at most %.0f", SECONDS_MOST);
	return instead(refusal, "for example --%s 2.5", row->name);
}

enum option_again option_again(const struct option_row *row)
{
	bool joins = row->kind == OPTION_LIST || row->kind == OPTION_TEXTS || row->kind == OPTION_WHOLE;

	return joins ? AGAIN_JOINS : row->again;
}

static int take_text(struct options *options, const struct option_row *row, const char *argument,
		     struct refusal *refusal)
{
	const char **text = place_of(options, row);

	if (*text && row->again == AGAIN_JOINS) {
		options_join(options, text, argument);
		return 0;
	}
	if (*text && row->again == AGAIN_REFUSED && strcmp(*text, argument)) {
		bad_value(row, argument, refusal);
		because(refusal, "it was given before, with '%.200s', and takes one value", *text);
		return instead(refusal, "give one of them");
	}
	*text = argument;
	return 0;
}

static int take_argument(struct options *options, const struct option_row *row, const char *argument,
			 struct refusal *refusal)
{
	void *place = place_of(options, row);

	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)place = true;
		return 0;
	case OPTION_FIXED:
		*(const char **)place = row->words[0];
		return 0;
	case OPTION_TEXT:
		return take_text(options, row, argument, refusal);
	case OPTION_LIST:
		return join_argument(options, row, argument, refusal);
	case OPTION_TEXTS:
	case OPTION_WHOLE:
		return add_text(options, row, argument, refusal);
	case OPTION_WORD:
		return take_word(options, row, argument, refusal);
	case OPTION_NUMBER:
		return number_of(row, argument, place, refusal);
	case OPTION_DELAY:
		return take_delay(options, row, argument, refusal);
	case OPTION_SECONDS:
		return take_seconds(options, row, argument, refusal);
	}
	return 0;
}

void options_release(struct options *options)
{
	for (size_t i = 0; i < options->nr_joined; i++)
		free(options->joined[i]);
	free(options->joined);
	free(options->own);
	options->joined = NULL;
	options->nr_joined = 0;
	options->own = NULL;
}

/* --- the command line ------------------------------------------------------------------------- */

struct gathered {
	const struct option_row *rows[ROWS_MOST];
	size_t nr;
};

static void gather_row(const struct option_row *row, void *context)
{
	struct gathered *gathered = context;

	if (gathered->nr < ROWS_MOST)
		gathered->rows[gathered->nr++] = row;
}

static int refuse_argument(const struct command *command, const char *text, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "option '%s'", text);
	because(refusal, "its argument is missing");
	return instead(refusal, "see nhmtap %s --help", command->name);
}

static const struct option_row *row_found(const struct gathered *gathered, int found)
{
	for (size_t i = 0; i < gathered->nr; i++)
		if (found == (int)(256 + i) || (found && found == gathered->rows[i]->letter))
			return gathered->rows[i];
	return NULL;
}

static int argument_of(const struct option_row *row)
{
	if (row->kind == OPTION_WHOLE)
		return optional_argument;
	return row->argument ? required_argument : no_argument;
}

/*
 * perf gives the cgroups of a -G to the events before it, and those after it to none; here all events are of
 * all cgroups. A line with events on both sides would be misunderstood. `seen` remembers what came so far.
 */
struct seen {
	bool events, cgroups;
};

static int check_order(struct seen *seen, const struct option_row *row, const char *argument,
		       struct refusal *refusal)
{
	bool events = !strcmp(row->name, "event");

	if (events && seen->cgroups) {
		bad_value(row, argument, refusal);
		because(refusal,
			"it comes after --cgroup, whose cgroups perf gives to the events before it; here "
			"all events are counted in all cgroups");
		return instead(refusal,
			       "write all events before --cgroup, or measure them in runs of their own "
			       "(nhmtap-run(1))");
	}
	seen->events = seen->events || events;
	seen->cgroups = seen->cgroups || (seen->events && !strcmp(row->name, "cgroup"));
	return 0;
}

void options_begin(struct options *options, const struct command *command)
{
	*options = (struct options){.command = command, .host_root = ""};
	options->own = xcalloc(1, command->own_size + 1);
}

#define LIVE_INTERVAL_MS 1000 /* of --live, if none is given */

int options_parse(struct options *options, const struct command *command, int argc, char **argv,
		  struct refusal *refusal)
{
	struct gathered gathered = {.nr = 0};
	struct option longs[ROWS_MOST + 1] = {0};
	/* ':' reports a missing argument separately. '+' stops at the first word that is not an option, for
	 * commands that have a COMMAND, whose options are its own. */
	char shorts[3 * ROWS_MOST + 3];
	bool stops = command->activity || command->stops_at_word;
	size_t used = sprintf(shorts, "%s:", stops ? "+" : "");
	const struct option_row *row;
	struct seen seen = {false};
	int found;

	options_begin(options, command);
	command_each_option(command, gather_row, &gathered);
	for (size_t i = 0; i < gathered.nr; i++) {
		row = gathered.rows[i];
		longs[i] = (struct option){row->name, argument_of(row), NULL, 256 + i};
		if (row->letter)
			used += snprintf(shorts + used, sizeof(shorts) - used, "%c%s", row->letter,
					 row->argument ? ":" : "");
	}

	optind = 0; /* also resets glibc's state from another command line: getopt(3) */
	opterr = 0;
	for (;;) {
		int at = optind ? optind : 1;

		while (!stops && at < argc && argv[at][0] != '-')
			at++;
		found = getopt_long(argc, argv, shorts, longs, NULL);
		if (found == -1)
			break;
		if (found == ':')
			return refuse_argument(command, argv[at < argc ? at : argc - 1], refusal);
		if (found == '?')
			return meant_option(command, argv[at < argc ? at : argc - 1], refusal);
		row = row_found(&gathered, found);
		if (check_order(&seen, row, optarg, refusal) ||
		    take_argument(options, row, row->kind == OPTION_WHOLE ? argv[optind - 1] : optarg,
				  refusal))
			return -1;
	}
	options->rest = argv + optind;
	options->nr_rest = argc - optind;
	if (options->live && !options->interval_ms)
		options->interval_ms = LIVE_INTERVAL_MS;
	return stops ? meant_values(argv, optind, refusal) : 0;
}

#define HELP_COLUMN 24

/* Number of bytes of UTF-8 that begin no character. "…" takes one column, but three bytes. */
static int continued(const char *text)
{
	int nr = 0;

	for (; *text; text++)
		nr += (*text & 0xc0) == 0x80;
	return nr;
}

static void help_row(const struct option_row *row, void *context)
{
	char text[64];

	if (!row->help)
		return;
	snprintf(text, sizeof(text), "%c%c%s--%s%s%s", row->letter ? '-' : ' ',
		 row->letter ? row->letter : ' ', row->letter ? ", " : "  ", row->name,
		 row->argument && row->kind != OPTION_WHOLE ? " " : "", row->argument ? row->argument : "");
	if ((int)strlen(text) - continued(text) > HELP_COLUMN) {
		fprintf(context, "  %s\n", text);
		*text = '\0';
	}
	fprintf(context, "  %-*s %s\n", HELP_COLUMN + continued(text), text, row->help);
}

void options_help(const struct command *command, FILE *out)
{
	command_each_option(command, help_row, out);
}

/* --- CONFIG ----------------------------------------------------------------------------------- */

const char *option_member(const struct option_row *row, char *buffer, size_t size)
{
	if (row->member)
		return row->member;
	snprintf(buffer, size, "%s", row->name);
	for (char *at = buffer; (at = strchr(at, '-')); at++)
		*at = '_';
	return buffer;
}

const struct option_row *option_of_member(const struct command *command, const char *member)
{
	struct gathered gathered = {.nr = 0};
	char name[64];

	command_each_option(command, gather_row, &gathered);
	for (size_t i = 0; i < gathered.nr; i++)
		if (!gathered.rows[i]->line_only &&
		    !strcmp(option_member(gathered.rows[i], name, sizeof(name)), member))
			return gathered.rows[i];
	return NULL;
}

static int refuse_kind(const struct option_row *row, const char *takes, struct refusal *refusal)
{
	char name[64];

	refuse(refusal, STATUS_USAGE, "member '%s'", option_member(row, name, sizeof(name)));
	return because(refusal, "it takes %s", takes);
}

/* A list may be given as one text, or as an array of texts. */
static int take_texts(struct options *options, const struct option_row *row, const json_t *value,
		      struct refusal *refusal)
{
	json_t *text;
	size_t i;

	if (json_is_string(value))
		return take_argument(options, row, json_string_value(value), refusal);
	if (!json_is_array(value))
		return refuse_kind(row, "a text, or a list of texts", refusal);
	json_array_foreach(value, i, text) {
		if (!json_is_string(text))
			return refuse_kind(row, "a text, or a list of texts", refusal);
		if (take_argument(options, row, json_string_value(text), refusal))
			return -1;
	}
	return 0;
}

static int take_number(struct options *options, const struct option_row *row, const json_t *value,
		       struct refusal *refusal)
{
	char text[64];

	if (!json_is_integer(value) && !(row->kind == OPTION_SECONDS && json_is_real(value)))
		return refuse_kind(row, row->kind == OPTION_SECONDS ? "a number" : "a whole number", refusal);
	if (json_is_real(value))
		snprintf(text, sizeof(text), "%.9f", json_real_value(value));
	else
		snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(value));
	return take_argument(options, row, text, refusal);
}

int option_take(struct options *options, const struct option_row *row, const json_t *value,
		struct refusal *refusal)
{
	switch (row->kind) {
	case OPTION_FLAG:
	case OPTION_FIXED:
		if (!json_is_boolean(value))
			return refuse_kind(row, "true or false", refusal);
		return json_is_true(value) ? take_argument(options, row, NULL, refusal) : 0;
	case OPTION_LIST:
	case OPTION_TEXTS:
	case OPTION_WHOLE:
		return take_texts(options, row, value, refusal);
	case OPTION_TEXT:
	case OPTION_WORD:
		if (!json_is_string(value))
			return refuse_kind(row, "a text", refusal);
		return take_argument(options, row, json_string_value(value), refusal);
	case OPTION_NUMBER:
	case OPTION_DELAY:
	case OPTION_SECONDS:
		return take_number(options, row, value, refusal);
	}
	return 0;
}

static json_t *schema_of_kind(const struct option_row *row)
{
	json_t *words;

	switch (row->kind) {
	case OPTION_FLAG:
	case OPTION_FIXED:
		return json_pack("{s:s}", "type", "boolean");
	case OPTION_TEXT:
		return json_pack("{s:s}", "type", "string");
	case OPTION_LIST:
	case OPTION_TEXTS:
	case OPTION_WHOLE:
		return json_pack("{s:[s,s], s:{s:s}}", "type", "string", "array", "items", "type", "string");
	case OPTION_WORD:
		words = json_array();
		for (const char *const *word = row->words; *word; word++)
			json_array_append_new(words, json_string(*word));
		return json_pack("{s:o}", "enum", words);
	case OPTION_NUMBER:
		return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum", (json_int_t)row->least,
				 "maximum", (json_int_t)row->most);
	case OPTION_DELAY:
		return json_pack("{s:s, s:i, s:I}", "type", "integer", "minimum", -1, "maximum",
				 (json_int_t)row->most);
	case OPTION_SECONDS:
		return json_pack("{s:s, s:f, s:f}", "type", "number", "minimum", SECONDS_LEAST, "maximum",
				 SECONDS_MOST);
	}
	return json_object();
}

json_t *option_schema(const struct option_row *row)
{
	json_t *schema = schema_of_kind(row);

	if (row->help)
		json_object_set_new(schema, "description", json_string(row->help));
	return schema;
}
