/* SPDX-License-Identifier: GPL-2.0-only */
/* What a user may have meant by a command or an option that does not exist: a similar name, or one of perf's.
 */
#pragma once

#include "base/refusal.h"
#include "option/command.h"

/* Refuses a command that does not exist. Returns -1. */
int meant_command(const char *name, struct refusal *refusal);

/* Refuses what getopt_long(3) has answered with '?': an option that `command` does not have, one of several
 * that begin so, or one that takes no value. `text` is as written: "--duraton=1", "-x". Returns -1. */
int meant_option(const struct command *command, const char *text, struct refusal *refusal);

/* Refuses a value of perf's --call-graph (fp, dwarf, lbr) behind ours, which takes none. Without this it
 * would be taken for COMMAND. words[at] is the first word behind the options; NULL ends the words. Returns 0
 * or -1. */
int meant_values(char *const *words, int at, struct refusal *refusal);
