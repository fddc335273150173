/* SPDX-License-Identifier: GPL-2.0-only */
/* Options as rows. A row gives an option's name, its argument, and where its value is stored. The same rows
 * define the command line, --help, the members of CONFIG, and CONFIG's schema. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <jansson.h>
#include <linux/types.h>

#include "base/refusal.h"
#include "option/options.h"

enum option_kind {
	OPTION_FLAG,	/* bool; takes no argument */
	OPTION_FIXED,	/* const char *, set to words[0]; takes no argument */
	OPTION_TEXT,	/* const char *; if given several times: see enum option_again */
	OPTION_LIST,	/* const char *; if given several times, joined with ',' */
	OPTION_TEXTS,	/* struct texts; if given several times, kept separately */
	OPTION_WHOLE,	/* struct texts; the words with the option, --NAME or --NAME=ARGUMENT */
	OPTION_WORD,	/* const char *, one of `words` */
	OPTION_NUMBER,	/* __u64, from `least` to `most` */
	OPTION_DELAY,	/* __s64, ms up to `most`, or -1 */
	OPTION_SECONDS, /* double, more than 0 */
};

/* The values that a text may have, or that may be in a list separated by ','. Used for shell completion. */
enum option_values {
	VALUES_WORDS, /* row->words; any text if there are none */
	VALUES_EVENTS,
	VALUES_METRICS,
	VALUES_FORMATS,
	VALUES_PIDS,
	VALUES_CGROUPS, /* paths below the mount of cgroup2 */
	VALUES_CPUS,	/* names of CPUs that have tables: nehalem-ep */
};

/* What an option does that is given several times. A row says it of a text; the other kinds have one way
 * each. */
enum option_again {
	AGAIN_REPLACES, /* the last one counts, as of a number */
	AGAIN_JOINS,	/* a list: the values are joined with ',' */
	AGAIN_REFUSED,	/* each would be wanted, but there is one: another value is refused */
};

struct option_row {
	char letter;	      /* 0: long only */
	const char *name;     /* "interval"; NULL ends a group */
	const char *argument; /* name of the argument in --help, "[=NAME]" if it may be missing; NULL: it
				 takes none */
	enum option_kind kind;
	size_t offset;		  /* offset of the value in struct options */
	bool own;		  /* the offset is in the struct at options->own instead */
	__u64 least, most;	  /* limits of a number */
	const char *const *words; /* terminated by NULL; for a text they are used for completion only */
	enum option_values values;
	const char *member; /* name in CONFIG; NULL: the option's name, with _ instead of - */
	enum option_again again;
	bool line_only;	  /* not allowed as a member of an activity in CONFIG */
	const char *help; /* NULL: an option for tests, which is not listed */
};

/* Initializers of `offset` and `own`. */
#define COMMON(member)	  offsetof(struct options, member)
#define OWN(type, member) offsetof(type, member), .own = true

/* Groups that are shared by several commands. */
extern const struct option_row event_rows[];	/* -e */
extern const struct option_row sampling_rows[]; /* -c, -F */
extern const struct option_row where_rows[];	/* --where */
extern const struct option_row stack_rows[];	/* -g, --max-stack */
extern const struct option_row target_rows[];	/* -p, -t, -G, -a, -C */
extern const struct option_row per_rows[];	/* --for-each-cgroup, --per, --per-cpu */
extern const struct option_row interval_rows[]; /* -I, --interval-count, -D, --control, --duration */
extern const struct option_row top_rows[];	/* --top */
extern const struct option_row output_rows[];	/* -o */
extern const struct option_row stream_rows[];	/* -o of commands that measure, --append, --queue */
extern const struct option_row format_rows[];	/* --format */
extern const struct option_row quiet_rows[];	/* -q */
extern const struct option_row told_rows[];	/* -v, -q */
extern const struct option_row screen_rows[];	/* -v, --live, -q */
extern const struct option_row plan_rows[];	/* --force */
extern const struct option_row msr_rows[];	/* --msr */
extern const struct option_row table_rows[];	/* --events-dir */
extern const struct option_row host_rows[];	/* --host-root */
extern const struct option_row cpu_rows[];	/* --cpu NAME */
extern const struct option_row machine_rows[];	/* --machine */
extern const struct option_row help_rows[];	/* --help */

/* Initializes the options of a command; none is set yet. */
void options_begin(struct options *options, const struct command *command);

/*
 * Parses the arguments after the command's name. If a COMMAND may follow, the first word that is not an
 * option ends the options: the words after it belong to that COMMAND. Returns 0, or -1 with the refusal. The
 * caller must call options_release() in either case.
 */
int options_parse(struct options *options, const struct command *command, int argc, char **argv,
		  struct refusal *refusal);

/* The row for a member of an activity in CONFIG; NULL if the command has no such option. */
const struct option_row *option_of_member(const struct command *command, const char *member);

/* A row's name in CONFIG. `buffer` is used if it differs from the option's name. */
const char *option_member(const struct option_row *row, char *buffer, size_t size);

/* Sets an option to the value of a member. Texts are not copied, so `value` must outlive `options`. Returns
 * 0, or -1 with the refusal. */
int option_take(struct options *options, const struct option_row *row, const json_t *value,
		struct refusal *refusal);

/* Returns the JSON Schema of a row's value: a new reference. */
json_t *option_schema(const struct option_row *row);

/* What a further value of an option does to those before it. */
enum option_again option_again(const struct option_row *row);

/* Prints the help on a command's options. */
void options_help(const struct command *command, FILE *out);
