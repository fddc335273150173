/* SPDX-License-Identifier: GPL-2.0-only */
/* The subcommands. Each is a struct that registers itself: the linker gathers them from all object files into
 * one section, so a new command is a new file and needs no change elsewhere. */
#pragma once

#include "base/refusal.h"
#include "option/option.h"
#include "option/options.h"

#define OPTION_GROUPS 16

struct activity_type;

struct command {
	const char *name;				 /* "stat" */
	const char *arguments;				 /* "[OPTIONS] [-- COMMAND …]" */
	const char *help;				 /* one sentence, without a full stop */
	const struct option_row *options[OPTION_GROUPS]; /* groups of rows, terminated by NULL */
	bool stops_at_word; /* options end at the first other word; always so if it measures */
	size_t own_size;    /* size of the struct to which rows with `own` set write */
	/* A command that measures is an activity, which a session runs. Other commands have run(), which
	 * returns the exit status. If it leaves a refusal (`asked` is not empty), that is printed on
	 * stderr. */
	const struct activity_type *activity;
	bool (*reads)(const struct options *options); /* a command that measures has run() as well, for
							 options of which this is true; else NULL */
	int (*run)(const struct options *options, struct refusal *refusal);
};

#define REGISTER_COMMAND(item)                                                                               \
	static const struct command *const registered_##item __attribute__((section("commands"), used)) =    \
		&(item)

/* The i-th command; NULL if there are no more. Commands that measure come first. */
const struct command *command_at(size_t i);

/* The command of this name; NULL if there is none. */
const struct command *command_find(const char *name);

/* Calls `each` with every row of a command's options. */
void command_each_option(const struct command *command,
			 void (*each)(const struct option_row *row, void *context), void *context);
