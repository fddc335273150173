/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line: one row an option, in options.c; the rows make the parser and --help. */
#ifndef NHMTAP_OPTIONS_H
#define NHMTAP_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>
#include <linux/types.h>

#include "refusal.h"

enum command_id {
	COMMAND_STAT = 1 << 0,
	COMMAND_PROFILE = 1 << 1,
	COMMAND_EXPLAIN = 1 << 2,
	COMMAND_SCHEMA = 1 << 3,
	COMMAND_DOCTOR = 1 << 4,
	COMMAND_LIST = 1 << 5,
	COMMAND_MEM = 1 << 6,
	COMMAND_OFFCORE = 1 << 7,
	COMMAND_BRANCH = 1 << 8,
	COMMAND_SYMBOLIZE = 1 << 9,
	COMMAND_FLAMEGRAPH = 1 << 10,
};

enum format { FORMAT_AUTO, FORMAT_JSON, FORMAT_TABLE, FORMAT_AUTOFDO, FORMAT_FOLDED, FORMAT_PPROF };

#define EXPECT_MOST 64

/* What was asked for. Strings point into argv. */
struct options {
	const char *events; /* -e; several join into one list */
	const char *metrics; /* -M; several join too, NULL if not given */
	const char *expect[EXPECT_MOST]; /* --expect, as often as it was given */
	size_t nr_expect;
	__u64 period;       /* -c, occurrences between two samples; 0 if not given */
	__u64 frequency;    /* -F, Hz; 0 if not given */
	const char *by;     /* --by, NULL if not given */
	bool call_graph;    /* -g, or the key stack */
	__u64 max_stack;    /* --max-stack, frames; 0 if not given */
	__u64 ldlat;        /* --ldlat, core cycles; 0 if not given */
	const char *request, *response, *preset; /* offcore's, NULL if not given */
	const char *side;   /* --side, "u" or "k"; NULL: both, as far as permissions allow */
	bool shared;        /* --shared */
	bool stream;        /* --stream */
	bool trace;         /* --trace */
	const char *pids;   /* -p */
	const char *tids;   /* -t */
	const char *cgroups, *each_cgroup; /* -G, --for-each-cgroup: NULL if not given */
	const char *per;    /* --per, NULL if not given */
	const char *cpus;   /* -C */
	bool all_cpus;      /* -a */
	__u64 interval_ms;  /* -I, 0: one interval, the whole run */
	__u64 interval_count; /* --interval-count, 0: to the run's end */
	__s64 delay_ms;     /* --delay, 0: none; -1: until it is enabled by --control */
	const char *control; /* --control, NULL if not given */
	double duration_s;  /* --duration, 0: to the target's end */
	__u64 repeats;      /* -r */
	const char *cpu;    /* explain --cpu: a CPU of the tables, NULL: this machine's */
	bool by_mispredicted; /* --sort mispredicted */
	const char *filter; /* --filter: branches, NULL if not given */
	bool precise;       /* list --precise */
	const char *symfs;  /* --symfs: where symbolize looks for files, NULL: as their paths say */
	const char *debug_dir; /* --debug-dir, NULL if not given */
	const char *kallsyms;  /* --kallsyms, NULL if not given */
	__u64 top;          /* --top, 0: all */
	const char *need;   /* --need, NULL if not given */
	const char *output; /* -o, NULL: stdout */
	enum format format;
	const char *events_dir; /* --events-dir, NULL if not given */
	const char *host_root; /* "" */
	bool verbose;       /* --verbose */
	bool force;         /* --force: rules that protect from useless results are set aside */
	bool help;
	char **rest; /* the arguments behind the options: COMMAND …, or a subcommand's own */
	int nr_rest;

	char joined_events[4096];
	char joined_metrics[4096];
};

/* Parses what follows the subcommand's name. Returns 0, or -1 with the refusal. */
int options_parse(struct options *options, enum command_id command, int argc, char **argv,
		  struct refusal *refusal);

/* Whether --by has this word. */
bool options_by(const struct options *options, const char *word);

/* Prints the rows that go with a command. */
void options_help(enum command_id command, FILE *out);

#endif
