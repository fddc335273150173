// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the command line: the first byte picks the command, and each line is an argument. Whatever
 * they are: no crash, no leak, and either options or a refusal with a reason.
 */
#include <stdlib.h>
#include <string.h>

#include "option/command.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

#define ARGUMENTS 64

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *arguments[ARGUMENTS + 2], *text, *at;
	struct refusal refusal = {0};
	const struct command *command;
	struct options options;
	int nr = 1;

	if (!size)
		return 0;
	command = command_at(data[0] % 16);
	if (!command)
		return -1; /* keeps the input out of the corpus */
	text = at = strndup((const char *)data + 1, size - 1);
	arguments[0] = (char *)command->name;
	while (at && nr <= ARGUMENTS)
		arguments[nr++] = strsep(&at, "\n");
	arguments[nr] = NULL;
	if (options_parse(&options, command, nr, arguments, &refusal) &&
	    (!refusal.asked[0] || !refusal.why[0] || !refusal.status))
		abort();
	options_release(&options);
	free(text);
	return 0;
}
