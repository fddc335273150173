// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap help [COMMAND]: shows the manual page of a command by man(1). With --json it prints commands,
 * options and formats as data, of which user/manual/pages.py makes the generated parts of the pages. */
#include "command/help.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <jansson.h>

#include "base/beside.h"
#include "base/memory.h"
#include "option/meant.h"
#include "output/output.h"
#include "output/text.h"

static bool has_formats(const struct command *command)
{
	for (size_t i = 0; i < OPTION_GROUPS && command->options[i]; i++)
		if (command->options[i] == format_rows)
			return true;
	return false;
}

#define HELP_INDENT    27 /* columns before the help of options and formats */
#define COMMAND_INDENT 15

/* Adds a line; what exceeds the width goes on below its help. */
static void add_line(struct text *text, const char *line, size_t length)
{
	size_t head = 0;
	char *help;

	for (int column = 0; head < length; head++)
		if ((line[head] & 0xc0) != 0x80 && ++column > HELP_INDENT)
			break;
	help = strndup(line + head, length - head);
	had(help);
	text_add(text, "%.*s", (int)head, line);
	text_wrap(text, HELP_INDENT, help);
	free(help);
}

static void add_help(struct text *text, const struct command *command)
{
	char *lines = NULL;
	size_t size;
	FILE *file = xopen_memstream(&lines, &size);

	options_help(command, file);
	if (has_formats(command)) {
		fputs("\nFORMAT is one of:\n", file);
		formats_help(command->name, file);
	}
	xclose_memstream(file);
	for (const char *at = lines, *end; *at; at = end + 1) {
		end = strchr(at, '\n');
		add_line(text, at, end - at);
	}
	free(lines);
}

void help_print(const struct command *command, FILE *out)
{
	struct text text = text_for_terminal(fileno(out));

	if (command) {
		text_add(&text, "nhmtap %s ", command->name);
		text_wrap(&text, 4, command->arguments);
		text_wrap(&text, 0, command->help);
		text_add(&text, "\n");
		add_help(&text, command);
	} else {
		text_wrap(&text, 0,
			  "nhmtap: counts and samples of the performance monitoring unit, as JSON records");
		text_add(&text, "\n");
		for (size_t i = 0; (command = command_at(i)); i++) {
			text_add(&text, "  %-*s ", COMMAND_INDENT - 3, command->name);
			text_wrap(&text, COMMAND_INDENT, command->help);
		}
		text_add(&text, "\n");
		text_wrap(&text, 0,
			  "nhmtap COMMAND --help lists the options, nhmtap help COMMAND shows the manual "
			  "page; nhmtap "
			  "--version the version, with -v or --json the libraries'.");
	}
	text_print(&text, out);
}

/* --- as data ------------------------------------------------------------------------------------------ */

/* What a further value does to those before it. */
static const char *again_of(const struct option_row *row)
{
	static const char *const texts[] = {
		[AGAIN_REPLACES] = "replaces", [AGAIN_JOINS] = "joins", [AGAIN_REFUSED] = "refused"};

	return texts[option_again(row)];
}

static void add_option(const struct option_row *row, void *context)
{
	char letter[2] = {row->letter, '\0'};
	json_t *option;

	if (!row->help)
		return; /* it is for tests only */
	option = json_pack("{s:s, s:s}", "name", row->name, "help", row->help);
	if (row->letter)
		json_object_set_new(option, "letter", json_string(letter));
	if (row->argument) {
		json_object_set_new(option, "argument", json_string(row->argument));
		json_object_set_new(option, "again", json_string(again_of(row)));
	}
	json_array_append_new(context, option);
}

static json_t *formats_of(const struct command *command)
{
	json_t *formats = json_array();
	const struct format *format;

	for (size_t i = 0; has_formats(command) && (format = format_at(i)); i++)
		if (format_is_of(format, command->name))
			json_array_append_new(
				formats, json_pack("{s:s, s:s}", "name", format->name, "help", format->help));
	return formats;
}

static void print_json(void)
{
	json_t *commands = json_array();
	const struct command *command;

	for (size_t i = 0; (command = command_at(i)); i++) {
		json_t *options = json_array();

		command_each_option(command, add_option, options);
		json_array_append_new(commands,
				      json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", command->name,
						"arguments", command->arguments, "help", command->help,
						"options", options, "formats", formats_of(command)));
	}
	json_dumpf(commands, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(commands);
}

/* --- as pages ----------------------------------------------------------------------------------------- */

/* Pages that are not about a command. */
static const char *const other_pages[] = {"config", "container", "events", "python", "records", NULL};

static bool has_page(const char *topic)
{
	for (size_t i = 0; other_pages[i]; i++)
		if (!strcmp(other_pages[i], topic))
			return true;
	return command_find(topic);
}

/* Shows a page. It is where make or make install has put it; if it is not there, man(1) searches its usual
 * path. */
static int show_page(const char *topic, struct refusal *refusal)
{
	static const char *const folders[] = {"man", "../share/man", NULL};
	char *page = topic ? xasprintf("nhmtap-%s", topic) : xasprintf("nhmtap");
	char folder[2100];

	if (beside_program(folder, sizeof(folder), folders, R_OK))
		execlp("man", "man", "-M", folder, page, (char *)NULL);
	else
		execlp("man", "man", page, (char *)NULL);
	refuse(refusal, STATUS_REFUSED, "the manual page %.100s", page);
	refusal->error = errno;
	because(refusal, "man can't be run: %s", strerror(errno));
	free(page);
	return instead(refusal, "nhmtap %s%s--help lists the options", topic ? topic : "", topic ? " " : "");
}

struct help_options {
	bool json;
};

static int run(const struct options *options, struct refusal *refusal)
{
	const struct help_options *own = options->own;

	if (own->json)
		print_json();
	else if (!options->nr_rest)
		help_print(NULL, stdout);
	else if (!has_page(options->rest[0]) ? meant_command(options->rest[0], refusal)
					     : show_page(options->rest[0], refusal))
		return refusal->status;
	return STATUS_DONE;
}

static const struct option_row rows[] = {
	{0, "json", NULL, OPTION_FLAG, OWN(struct help_options, json),
	 .help = "commands, options and formats as JSON"},
	{0},
};

static const struct command help = {
	.name = "help",
	.arguments = "[COMMAND]",
	.help = "shows the manual page of a command, or of events, config, records, python, container",
	.options = {rows, help_rows},
	.own_size = sizeof(struct help_options),
	.run = run,
};
REGISTER_COMMAND(help);
