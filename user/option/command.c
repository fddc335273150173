// SPDX-License-Identifier: GPL-2.0-only
#include "option/command.h"

#include <string.h>

/* The linker defines these symbols for a section whose name is an identifier. */
extern const struct command *const __start_commands[], *const __stop_commands[];

const struct command *command_at(size_t wanted)
{
	size_t nr = __stop_commands - __start_commands, seen = 0;

	for (int measures = 1; measures >= 0; measures--)
		for (size_t i = 0; i < nr; i++)
			if (!!__start_commands[i]->activity == measures && seen++ == wanted)
				return __start_commands[i];
	return NULL;
}

const struct command *command_find(const char *name)
{
	const struct command *command;

	for (size_t i = 0; (command = command_at(i)); i++)
		if (!strcmp(command->name, name))
			return command;
	return NULL;
}

void command_each_option(const struct command *command,
			 void (*each)(const struct option_row *row, void *context), void *context)
{
	for (size_t group = 0; group < OPTION_GROUPS && command->options[group]; group++)
		for (const struct option_row *row = command->options[group]; row->name; row++)
			each(row, context);
}
