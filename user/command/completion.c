// SPDX-License-Identifier: GPL-2.0-only
/*
 * nhmtap completion: completes command lines for shells. `bash` and `zsh` print a script for the shell. The
 * scripts call `words` to get the candidates for the word that is being completed, which follow from the
 * option tables of the commands.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <jansson.h>

#include "base/embedded.h"
#include "base/memory.h"
#include "host/host.h"
#include "option/command.h"
#include "output/output.h"
#include "tables/known_event.h"

/* What is to be completed. */
struct completing {
	const struct command *command;
	const char *before; /* part of the word before `begun`, which candidates repeat: "--by=comm," */
	size_t before_length;
	const char *begun; /* prefix of the candidates */
};

static void offer_candidate(const struct completing *completing, const char *candidate)
{
	if (!strncmp(candidate, completing->begun, strlen(completing->begun)))
		printf("%.*s%s\n", (int)completing->before_length, completing->before, candidate);
}

/* --- values ------------------------------------------------------------------------------------------ */

/* Runs nhmtap list, and returns its records as a stream; NULL on failure. The caller closes it and waits for
 * *pid. */
static FILE *open_list(pid_t *pid)
{
	int ends[2];

	if (pipe(ends))
		return NULL;
	*pid = fork();
	if (!*pid) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execl("/proc/self/exe", "nhmtap", "list", "--json", (char *)NULL);
		_exit(STATUS_REFUSED);
	}
	close(ends[1]);
	if (*pid > 0)
		return fdopen(ends[0], "re");
	close(ends[0]);
	return NULL;
}

/* Offers the names in the section of metrics, or all other names. */
static void offer_listed(const struct completing *completing, bool metrics)
{
	char *line = NULL;
	size_t size = 0;
	pid_t pid;
	FILE *list = open_list(&pid);

	while (list && getline(&line, &size, list) > 0) {
		json_t *record = json_loads(line, 0, NULL);
		const char *section = json_string_value(json_object_get(record, "section"));
		const char *name = json_string_value(json_object_get(record, "name"));

		if (section && name && !strncmp(section, "metrics", strlen("metrics")) == metrics)
			offer_candidate(completing, name);
		json_decref(record);
	}
	free(line);
	if (!list)
		return;
	fclose(list);
	waitpid(pid, NULL, 0);
}

static void offer_events(const struct completing *completing)
{
	offer_listed(completing, false);
}

static void offer_metrics(const struct completing *completing)
{
	offer_listed(completing, true);
}

static void offer_formats(const struct completing *completing)
{
	const struct format *format;

	for (size_t i = 0; (format = format_at(i)); i++)
		if (format_is_of(format, completing->command->name))
			offer_candidate(completing, format->name);
}

static void offer_pids(const struct completing *completing)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (isdigit((unsigned char)entry->d_name[0]))
			offer_candidate(completing, entry->d_name);
	if (folder)
		closedir(folder);
}

/* Offers the children of a cgroup: for "/system.slice/", those in that one. */
static void offer_cgroups(const struct completing *completing)
{
	const char *slash = strrchr(completing->begun, '/');
	int length = slash ? slash - completing->begun : 0;
	struct host host = {0};
	struct dirent *entry;
	char *path;
	DIR *folder;

	if (host_gather(&host, "") || !host.cgroup_mount[0])
		return;
	path = xasprintf("%s%.*s", host.cgroup_mount, length, completing->begun);
	folder = opendir(path);
	free(path);
	while (folder && (entry = readdir(folder))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		path = xasprintf("%.*s/%s", length, completing->begun, entry->d_name);
		offer_candidate(completing, path);
		free(path);
	}
	if (folder)
		closedir(folder);
	host_release(&host);
}

static void offer_cpus(const struct completing *completing)
{
	for (size_t i = 0; i < nr_known_cpus; i++)
		offer_candidate(completing, known_cpus[i].name);
}

static void (*const offers[])(const struct completing *completing) = {
	[VALUES_EVENTS] = offer_events, [VALUES_METRICS] = offer_metrics, [VALUES_FORMATS] = offer_formats,
	[VALUES_PIDS] = offer_pids,	[VALUES_CGROUPS] = offer_cgroups, [VALUES_CPUS] = offer_cpus,
};

/* Offers values for the option of a row. If the value is a list, its last element is completed. */
static void offer_values(struct completing *completing, const struct option_row *row, const char *value)
{
	const char *comma = row->kind == OPTION_TEXT || row->kind == OPTION_LIST ? strrchr(value, ',') : NULL;

	completing->begun = comma ? comma + 1 : value;
	completing->before_length = completing->begun - completing->before;
	if (row->values)
		offers[row->values](completing);
	for (const char *const *word = row->words; word && *word; word++)
		offer_candidate(completing, *word);
}

/* --- options ----------------------------------------------------------------------------------------- */

/* Whether the next word is the option's value. */
static bool takes_value(const struct option_row *row)
{
	return row->kind != OPTION_FLAG && row->kind != OPTION_FIXED && row->kind != OPTION_WHOLE;
}

struct wanted_words {
	const char *name;
	size_t length;
	const struct option_row *found;
};

static void compare_row(const struct option_row *row, void *context)
{
	struct wanted_words *wanted = context;
	bool letter = wanted->length == 2 && wanted->name[0] == '-' && row->letter == wanted->name[1];

	if (letter || (wanted->length > 2 && !strncmp(wanted->name, "--", 2) &&
		       strlen(row->name) == wanted->length - 2 &&
		       !strncmp(row->name, wanted->name + 2, wanted->length - 2)))
		wanted->found = row;
}

/* The row of an option as it stands on the line: "-e", "--event"; NULL if the command has no such option. */
static const struct option_row *row_of(const struct command *command, const char *name, size_t length)
{
	struct wanted_words wanted = {name, length, NULL};

	command_each_option(command, compare_row, &wanted);
	return wanted.found;
}

static void offer_option(const struct option_row *row, void *context)
{
	char name[80];

	if (!row->help)
		return; /* it is for tests only */
	snprintf(name, sizeof(name), "--%s", row->name);
	offer_candidate(context, name);
}

/* --- words ------------------------------------------------------------------------------------------- */

static void offer_commands(const struct completing *completing)
{
	const struct command *command;

	for (size_t i = 0; (command = command_at(i)); i++)
		offer_candidate(completing, command->name);
	offer_candidate(completing, "--help");
	offer_candidate(completing, "--version");
}

/* Completes the last of a command's words. Words after "--" and names of files are left to the shell. */
static void complete_of(struct completing *completing, char **words, int nr)
{
	const char *last = words[nr - 1], *equals = strchr(last, '=');
	const struct option_row *row = NULL;

	for (int i = 0; i < nr - 1; i++)
		if (!strcmp(words[i], "--"))
			return;
	if (nr > 1 && words[nr - 2][0] == '-')
		row = row_of(completing->command, words[nr - 2], strlen(words[nr - 2]));
	if (row && takes_value(row)) {
		offer_values(completing, row, last);
		return;
	}
	if (!strncmp(last, "--", 2) && equals) {
		row = row_of(completing->command, last, equals - last);
		if (row && row->argument)
			offer_values(completing, row, equals + 1);
		return;
	}
	if (last[0] == '-')
		command_each_option(completing->command, offer_option, completing);
}

static void complete_words(char **words, int nr)
{
	struct completing completing = {.before = nr ? words[nr - 1] : "", .begun = nr ? words[nr - 1] : ""};

	if (nr < 2) {
		offer_commands(&completing);
		return;
	}
	completing.command = command_find(words[0]);
	if (completing.command)
		complete_of(&completing, words + 1, nr - 1);
}

/* --- the command --------------------------------------------------------------------------------------- */

static int print_script(const char *shell, struct refusal *refusal)
{
	struct embedded script;
	char name[40];

	snprintf(name, sizeof(name), "completion.%.20s", shell);
	script = embedded_find(name);
	if (script.name) {
		fwrite(script.data, 1, script.size, stdout);
		return STATUS_DONE;
	}
	refuse(refusal, STATUS_USAGE, "shell '%s'", shell);
	because(refusal, "there is no completion for it");
	instead(refusal, "bash or zsh");
	return STATUS_USAGE;
}

static int run(const struct options *options, struct refusal *refusal)
{
	if (!options->nr_rest) {
		refuse(refusal, STATUS_USAGE, "nhmtap completion");
		because(refusal, "the shell is missing");
		instead(refusal, "nhmtap completion bash, or zsh");
		return STATUS_USAGE;
	}
	if (strcmp(options->rest[0], "words"))
		return print_script(options->rest[0], refusal);
	/* the arguments are "words", "--", and the words of the line */
	complete_words(options->rest + 2, options->nr_rest > 2 ? options->nr_rest - 2 : 0);
	return STATUS_DONE;
}

static const struct command completion = {
	.name = "completion",
	.arguments = "bash|zsh",
	.help = "prints the script that completes command lines in a shell",
	.options = {help_rows},
	.stops_at_word = true,
	.run = run,
};
REGISTER_COMMAND(completion);
