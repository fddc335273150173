/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The subcommands: one struct each, which registers itself. The linker gathers them from all object files in
 * one section, so a new command is a new file and needs no edit elsewhere.
 */
#ifndef NHMTAP_COMMAND_H
#define NHMTAP_COMMAND_H

#include "option/option.h"
#include "option/options.h"
#include "refusal.h"

#define OPTION_GROUPS 16

struct activity_type;

struct command {
	const char *name;				 /* "stat" */
	const char *arguments;				 /* "[OPTIONS] [-- COMMAND …]" */
	const char *help;				 /* one sentence, without a full stop */
	const struct option_row *options[OPTION_GROUPS]; /* groups of rows, ended by NULL */
	bool stops_at_word; /* a word that is no option ends its options; always so if it measures */
	size_t own_size;    /* of the struct that rows with `own` set write to */
	/* Commands that measure are activities: a session runs them. The others run by themselves, and
	 * return the exit status; what is to be said on stderr is in the refusal (asked not empty). */
	const struct activity_type *activity;
	int (*run)(const struct options *options, struct refusal *refusal);
};

#define REGISTER_COMMAND(item)                                                                               \
	static const struct command *const registered_##item __attribute__((section("commands"), used)) =    \
		&(item)

/* The i-th command, NULL behind the last. Those that measure come first. */
const struct command *command_at(size_t i);

/* The command of this name; NULL if there is none. */
const struct command *command_find(const char *name);

#endif
