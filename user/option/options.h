/* SPDX-License-Identifier: GPL-2.0-only */
/* The options that the user gave. Those that several commands share are members here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct command;

/* Arguments of --unwind. */
#define CUMULATIVE "cumulative" /* value of --temporality */

#define UNWIND_AUTO   "auto"
#define UNWIND_FP     "fp"
#define UNWIND_TABLES "tables"

#define TEXTS_MOST 64

struct texts {
	const char *list[TEXTS_MOST];
	size_t nr;
};

/* Texts point into argv, into the CONFIG that they are from, or into `joined`. */
struct options {
	const struct command *command;
	void *own;	       /* options of this command alone: command->own_size bytes */
	const char *events;    /* -e; joined if given several times */
	const char *metrics;   /* -M; joined if given several times, NULL if not given */
	__u64 period;	       /* -c, occurrences between two samples; 0 if not given */
	__u64 frequency;       /* -F, Hz; 0 if not given */
	__u64 usual_frequency; /* default frequency in Hz if neither is given; 0: nhmtap's default */
	const char *by;	       /* --by, NULL if not given */
	const char *annotate;  /* --annotate, NULL if not given */
	const char *where;     /* --where, NULL if not given */
	bool stream;	       /* --stream; the command stream has it always */
	bool adaptive;	       /* --adaptive */
	bool call_graph;       /* -g, or `stack` among the keys */
	__u64 max_stack;       /* --max-stack, frames; 0 if not given */
	const char *unwind;    /* --unwind: how user stacks are walked, NULL if not given */
	const char *filter;    /* --filter: branches, NULL if not given */
	const char *pids;      /* -p */
	const char *tids;      /* -t */
	const char *cgroups, *each_cgroup; /* -G, --for-each-cgroup: NULL if not given */
	const char *containers;		   /* --container: prefixes of ids, NULL if not given */
	const char *per;		   /* --per, NULL if not given */
	const char *cpus;		   /* -C */
	bool all_cpus;			   /* -a */
	__u64 interval_ms;		   /* -I, 0: one interval, the whole run */
	__u64 interval_count;		   /* --interval-count, 0: unlimited */
	__s64 delay_ms;			   /* --delay, 0: none; -1: until --control enables counting */
	const char *control;		   /* --control, NULL if not given */
	__u64 series;			   /* --series, 0 if not given */
	const char *listen;		   /* --listen, NULL if not given */
	double duration_s;		   /* --duration, 0: until the target ends */
	__u64 repeats;			   /* -r, 0 if not given */
	const char *cpu;      /* --cpu of list and explain: a CPU that has tables; NULL: this machine's */
	__u64 top;	      /* --top, 0: all */
	const char *output;   /* -o, NULL: stdout */
	struct texts outputs; /* -o of commands that measure, which can have several */
	bool append;	      /* --append */
	__u64 queue_bytes;    /* --queue, 0 if not given */
	const char *tls_files[3], *headers_file; /* --tls-ca-file and its like, NULL if not given */
	const char *temporality;		 /* --temporality, NULL if not given */
	bool tls_unverified;			 /* --tls-insecure-skip-verify */
	const char *memory;			 /* --memory, NULL if not given */
	const char *cpu_share;			 /* --cpu-share, likewise */
	struct texts machine;			 /* the words --machine and --machine=MODEL */
	const char *format;			 /* --format, NULL: table on a terminal, otherwise json */
	const char *events_dir;			 /* --events-dir, NULL if not given */
	const char *pmu_events;			 /* --pmu-events, NULL if not given */
	const char *host_root;			 /* --host-root, "" if not given */
	bool verbose;				 /* --verbose */
	bool quiet;				 /* --quiet: no progress on stderr, no hints */
	bool live;				 /* --live: each interval replaces the previous one */
	bool msr;   /* --msr: allow counters that require writes to model-specific registers */
	bool force; /* --force: ignore rules that protect from useless results */
	bool help;
	char **rest; /* the arguments after the options: COMMAND …, or those of the subcommand */
	int nr_rest;

	char **joined; /* lists that were joined from several options */
	size_t nr_joined;
};

/* Releases what parsing allocated. */
void options_release(struct options *options);

/* Appends to a list separated by ','; NULL is the empty list. The options own the result. */
void options_join(struct options *options, const char **list, const char *text);
