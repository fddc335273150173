/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Options as rows: a row says what an option is called, what it takes and where the value goes. The
 * same rows make the parser of the command line, --help, the reader of CONFIG and its schema.
 */
#ifndef NHMTAP_OPTION_H
#define NHMTAP_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <jansson.h>
#include <linux/types.h>

#include "option/options.h"
#include "refusal.h"

enum option_kind {
	OPTION_FLAG,	/* bool; takes no argument */
	OPTION_FIXED,	/* const char *, set to words[0]; takes no argument */
	OPTION_TEXT,	/* const char * */
	OPTION_LIST,	/* const char *; several join, with ',' between them */
	OPTION_TEXTS,	/* struct texts: each one by itself */
	OPTION_WORD,	/* const char *, one of words */
	OPTION_NUMBER,	/* __u64, from least to most */
	OPTION_DELAY,	/* __s64, ms up to most, or -1 */
	OPTION_SECONDS, /* double, more than 0 */
};

/* What a text is one of, or a list of with commas between, for the completion of shells. */
enum option_values {
	VALUES_WORDS, /* row->words; anything where there are none */
	VALUES_EVENTS,
	VALUES_METRICS,
	VALUES_FORMATS,
	VALUES_PIDS,
	VALUES_CGROUPS, /* paths below the mount of cgroup2 */
	VALUES_CPUS,	/* CPUs of the tables: nehalem-ep */
};

struct option_row {
	char letter;	      /* 0: long only */
	const char *name;     /* "interval"; NULL ends a group */
	const char *argument; /* as --help shows it; NULL: none */
	enum option_kind kind;
	size_t offset;		  /* where the value goes: in struct options */
	bool own;		  /* or in the struct of options->own */
	__u64 least, most;	  /* of numbers */
	const char *const *words; /* ended by NULL; those of a text are for completion alone */
	enum option_values values;
	const char *member; /* its name in CONFIG; NULL: the option's, with _ for - */
	bool line_only;	    /* it is no member of an activity in CONFIG */
	const char *help;   /* NULL: for tests, not listed */
};

/* Where a value goes. */
#define COMMON(member)	  offsetof(struct options, member)
#define OWN(type, member) offsetof(type, member), .own = true

/* Groups that several commands share. */
extern const struct option_row event_rows[];	/* -e */
extern const struct option_row sampling_rows[]; /* -c, -F */
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
extern const struct option_row help_rows[];	/* --help */

/* Options of a command of which none is given yet. */
void options_begin(struct options *options, const struct command *command);

/*
 * Parses what follows the command's name. Where a COMMAND may follow, the first word that is no option
 * ends the options: what follows has its own. Returns 0, or -1 with the refusal; the caller
 * calls options_release() in any case.
 */
int options_parse(struct options *options, const struct command *command, int argc, char **argv,
		  struct refusal *refusal);

/* The row that a member of CONFIG's activities names; NULL if the command has none. */
const struct option_row *option_of_member(const struct command *command, const char *member);

/* A row's name in CONFIG; buffer holds it where it differs from the option's. */
const char *option_member(const struct option_row *row, char *buffer, size_t size);

/*
 * Takes a member's value as the option's. `options` points to texts of the value, which has to live as
 * long. Returns 0, or -1 with the refusal.
 */
int option_take(struct options *options, const struct option_row *row, const json_t *value,
		struct refusal *refusal);

/* The JSON Schema of a row's value; a new reference. */
json_t *option_schema(const struct option_row *row);

/* Calls `each` with every row of a command. */
void options_each(const struct command *command, void (*each)(const struct option_row *row, void *context),
		  void *context);

/* Prints the rows that go with a command. */
void options_help(const struct command *command, FILE *out);

#endif
