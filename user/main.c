// SPDX-License-Identifier: GPL-2.0-only
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command/command.h"
#include "options.h"

static const struct command {
	const char *name;
	enum command_id id;
	int (*run)(const struct options *options, struct refusal *refusal);
	const char *arguments;
	const char *help;
} commands[] = {
	{"profile", COMMAND_PROFILE, command_profile, "[OPTIONS] [-- COMMAND …]",
	 "samples an event and aggregates the samples in the kernel"},
	{"branch", COMMAND_BRANCH, command_branch, "[OPTIONS] [-- COMMAND …]",
	 "shows which branches are taken, how often, how often mispredicted"},
	{"stat", COMMAND_STAT, command_stat, "[OPTIONS] [-- COMMAND …]", "counts events"},
	{"mem", COMMAND_MEM, command_mem, "[OPTIONS] [-- COMMAND …]",
	 "samples loads by where they found their data, and how long they took"},
	{"offcore", COMMAND_OFFCORE, command_offcore, "[OPTIONS] [-- COMMAND …]",
	 "counts requests that leave the core, by who asked and who answered"},
	{"flamegraph", COMMAND_FLAMEGRAPH, command_flamegraph, "[OPTIONS] < RECORDS",
	 "draws the stacks of a stream of records: one page, for any browser"},
	{"list", COMMAND_LIST, command_list, "[OPTIONS] [PATTERN]", "the events that this machine has, or another CPU"},
	{"explain", COMMAND_EXPLAIN, command_explain, "[OPTIONS] EVENT …",
	 "shows what the kernel would be asked for, what it would program, and why"},
	{"doctor", COMMAND_DOCTOR, command_doctor, "[OPTIONS]",
	 "tries what this machine can do, and says why not and what mends it"},
	{"symbolize", COMMAND_SYMBOLIZE, command_symbolize, "[OPTIONS] [FILE]",
	 "names the code in records that were stored: functions, source lines"},
	{"schema", COMMAND_SCHEMA, command_schema, "[TYPE]",
	 "prints the JSON Schema of a record type, or of all"},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* What ends a sentence that may end with a mark of its own. */
static const char *full_stop(const char *sentence)
{
	return sentence[strlen(sentence) - 1] == '?' ? "" : ".";
}

static void tell(const struct refusal *refusal)
{
	if (!refusal->asked[0])
		return;
	fprintf(stderr, "nhmtap: %s: %s", refusal->asked, refusal->why);
	if (refusal->source[0])
		fprintf(stderr, " (%s)", refusal->source);
	fputc('.', stderr);
	if (refusal->remedy[0])
		fprintf(stderr, " Next: %s%s", refusal->remedy, full_stop(refusal->remedy));
	fputc('\n', stderr);
	if (refusal->column)
		fprintf(stderr, "  %s\n  %*s\n", refusal->input, refusal->column, "^");
}

static int help(FILE *out)
{
	fputs("nhmtap: counts and samples of the performance monitoring unit, as JSON records\n\n", out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  nhmtap %-10s %-26s %s\n", commands[i].name, commands[i].arguments,
			commands[i].help);
	fputs("\nnhmtap COMMAND --help lists the options; nhmtap --version the version.\n", out);
	return STATUS_DONE;
}

static int command_help(const struct command *command)
{
	printf("nhmtap %s %s\n%s\n\n", command->name, command->arguments, command->help);
	options_help(command->id, stdout);
	return STATUS_DONE;
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

/* A standard stream that is closed would give its number to the next file that is opened, and
 * records would be written there. This way they fail, with EBADF, as they should. */
static void keep_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	const struct command *command;
	struct options options;
	struct refusal refusal = {0};
	int status;

	keep_standard_streams();
	setlocale(LC_ALL, "C");
	if (argc < 2) {
		help(stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return help(stdout);
	if (!strcmp(argv[1], "--version")) {
		puts("nhmtap " NHMTAP_VERSION);
		return STATUS_DONE;
	}
	command = find(argv[1]);
	if (!command) {
		refuse(&refusal, STATUS_USAGE, "'%s'", argv[1]);
		because(&refusal, "there is no such command");
		instead(&refusal, "see nhmtap --help");
		tell(&refusal);
		return STATUS_USAGE;
	}
	if (options_parse(&options, command->id, argc - 1, argv + 1, &refusal))
		status = refusal.status;
	else if (options.help)
		status = command_help(command);
	else
		status = command->run(&options, &refusal);
	tell(&refusal);
	return status;
}
