// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <jansson.h>

#include "aggregation/folding.h"
#include "base/memory.h"
#include "base/visible.h"
#include "command/help.h"
#include "command/on_machine.h"
#include "command/versions.h"
#include "host/privileges.h"
#include "option/command.h"
#include "option/meant.h"
#include "output/output.h"
#include "run/run.h"

/* Flushes stdout. Returns STATUS_DONE, or STATUS_PARTIAL if something could not be written. */
static int printed(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return STATUS_DONE;
	say("nhmtap: writing to stdout: %s.", strerror(errno));
	return STATUS_PARTIAL;
}

static int print_help(const struct command *command)
{
	help_print(command, stdout);
	return printed();
}

/*
 * Opens standard streams that are closed. Otherwise the next file to be opened would get the stream's number,
 * and records would be written to it. /dev/null is opened for the other direction than the stream's, so that
 * reading or writing fails with EBADF, as it should.
 */
static void keep_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static int version(const char *how)
{
	if (!strcmp(how, "--json")) {
		versions_print_json();
		return printed();
	}
	puts("nhmtap " NHMTAP_VERSION);
	if (!strcmp(how, "-v") || !strcmp(how, "--verbose"))
		versions_print();
	return printed();
}

/*
 * Has the heap give memory back during long runs. Reading a large file's symbols and tables needs much memory
 * for a moment. By default, the heap of each thread would keep it, because malloc(3) raises its threshold
 * when large blocks are freed.
 */
static void keep_no_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, 128 << 10); /* glibc's default; setting it keeps it from being raised */
	mallopt(M_ARENA_MAX, 1);
}

int main(int argc, char **argv)
{
	const struct command *command;
	struct options options;
	struct refusal refusal = {0};
	int status;

	keep_no_memory();
	if (privileges_begin()) {
		refuse(&refusal, STATUS_REFUSED, "the privileges that the program's file gives");
		because(&refusal, "the user and group of who runs it can't be taken: %s", strerror(errno));
		instead(&refusal, "run a copy that gives none");
		say_refusal(&refusal);
		return STATUS_REFUSED;
	}
	keep_standard_streams();
	json_set_alloc_funcs(xmalloc, free);
	folding_begin(); /* if it fails, samples only cost more */
	setlocale(LC_ALL, "C");
	if (argc < 2) {
		help_print(NULL, stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return print_help(NULL);
	if (!strcmp(argv[1], "--version"))
		return version(argc > 2 ? argv[2] : "");
	command = command_find(argv[1]);
	if (!command) {
		meant_command(argv[1], &refusal);
		say_refusal(&refusal);
		return STATUS_USAGE;
	}
	if (options_parse(&options, command, argc - 1, argv + 1, &refusal))
		status = refusal.status;
	else if (options.help)
		status = print_help(command);
	else if (options.machine.nr)
		status = on_machine(&options, argc, argv, &refusal);
	else
		status = command->activity && !(command->reads && command->reads(&options))
				 ? run_one(&options, &refusal)
				 : command->run(&options, &refusal);
	say_refusal(&refusal);
	options_release(&options);
	return status ? status : printed();
}
