/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs that sample: each event with an aggregation of bpf/ behind it, reported as records of one type,
 * with the account of the samples. */
#ifndef NHMTAP_SAMPLING_H
#define NHMTAP_SAMPLING_H

#include <stdbool.h>
#include <jansson.h>

#include "collection/aggregation.h"
#include "collection/counters.h"
#include "options.h"
#include "plan/plan.h"
#include "refusal.h"
#include "run/run.h"

/* Puts what a reading found into a record. */
typedef void (*put_fn)(const struct run *run, json_t *record, const struct layout *layout,
		       struct reading *reading);

/* What an event's interval gave, before its entries are sorted and cut. */
struct sampled {
	const struct event *event;
	size_t index;                /* of the event in the plan */
	const struct layout *layout;
	struct reading *reading;
	const struct count *count;   /* since the record before */
};

struct sampling {
	const char *command;      /* the subcommand, and the type of its records: "profile" */
	const char *aggregation;  /* its file in bpf/: "profile" for profile.bpf.c */
	const char *default_keys; /* of --by */
	const char *stream_keys;  /* of --by with --stream; NULL: there is no stream */
	bool reads_stacks;        /* the program may get none, which the account then speaks of */
	put_fn put;               /* NULL: entries, by their keys */
	const char *ahead;        /* a list of its records that stands in front of them, as records of
				   * a type of this name; NULL: none */
	bool places; /* it always tells where addresses lie */
	unsigned int names; /* and how they are called, unless --by says so: of enum code_detail */
	const struct code_key *code_keys; /* keys of --by that are names; NULL: there are none */
	int (*plan)(struct plan *plan, const struct options *options, struct host *host,
		    struct refusal *refusal);
	bool knows_throttling; /* its program counts the times that the event was stopped */
	/* Adds what the records of this command alone have, and writes others behind; may be NULL. */
	void (*complete)(const struct run *run, const struct sampled *sampled, json_t *record);
	int (*follow)(struct run *run, const struct sampled *sampled);
};

/* How many of `nr` entries a record is to have: records hold all, a screen what fits, unless --top says
 * otherwise. */
size_t sampling_most_entries(const struct run *run, size_t nr);

/* Returns the exit status, with a refusal filled in if there is one to be told; see run_activity(). */
int sampling_run(const struct sampling *sampling, const struct options *options,
		 struct refusal *refusal);

#endif
