/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include <stdio.h>

#include "option/command.h"

/* Prints the text of --help: a command's options and formats; if command is NULL, the list of commands. */
void help_print(const struct command *command, FILE *out);
