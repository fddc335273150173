/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs a session: opens and attaches everything, starts the command, reports intervals, ends, and writes the
 * end to the streams. An activity from the command line and several from CONFIG are run by the same code. */
#pragma once

#include <jansson.h>

#include "base/refusal.h"
#include "option/options.h"
#include "output/output.h"

/* An activity that was asked for. */
struct asked {
	char *name;
	struct options options;
	size_t place;  /* index among CONFIG's activities, from 0 */
	json_t *value; /* its entry in CONFIG, which the options point into; NULL: from the command line */
	bool retry;    /* it is tried again if it can't start or has died */
};

/* A request to run a session. */
struct request {
	struct asked **entries;
	size_t nr_entries;
	struct place_of_output *outputs;
	size_t nr_outputs;
	char **command;	     /* COMMAND …, NULL if there is none */
	const char *control; /* see control_open() */
	__u64 heartbeat_s;   /* longest time that a stream is silent; 0: no limit */
	const char *listen;  /* see listen_open() */
	const char *events_dir, *pmu_events, *host_root;
	const struct apart *watcher; /* watches CONFIG: see watch_begin(); NULL, or no process: nobody does */
	const char *config;	     /* CONFIG's path; NULL: one activity from the command line */
	json_t *document; /* CONFIG's content, with variables expanded; owns what entries point to */
	bool verbose, quiet, live;
	bool check;	       /* opens nothing: start records on stdout show what would be opened */
	struct refusal *found; /* with `check`: mistakes that were found and passed over */
	size_t nr_found;
	bool partial;		/* some were passed over before the outputs, so activities may be missing */
	const json_t *resource; /* attributes for start records, NULL if there are none */
	size_t names_bytes;	/* memory for names, 0: the default */
	size_t memory;		/* limit of memory for everything, 0: none */
	double cpu_share;	/* limit as a share of one CPU, 0: none */
};

/* Reads the request again on HUP. Returns 0, or -1 with the refusal. */
typedef int (*read_fn)(struct request *request, const struct request *before, struct refusal *refusal);

/*
 * Runs a session. `again` reads its request again on HUP; NULL: HUP ends the session. Takes ownership of the
 * request's entries. Returns the exit status. If there is an error to be reported, the refusal is filled in
 * (`asked` is not empty).
 */
int run_session(struct request *request, read_fn again, struct refusal *refusal);

/* Runs a session of a single activity, by its options. */
int run_one(struct options *options, struct refusal *refusal);

/* Parses an output from the command line: "FORMAT=PLACE" if the first part is a format's name, otherwise all
 * of it is the place. "-" is stdout. The path is borrowed from `text`. Returns 0, or -1 with the refusal of
 * what is probably a misspelt format. */
int request_place(struct place_of_output *place, const struct options *options, const char *text,
		  struct refusal *refusal);

/* What the options name for servers: files in PEM form and with headers. The paths are borrowed. */
struct push_access request_access(const struct options *options);

/* Whether counters of OTLP are cumulative: by what is asked for ("delta", "cumulative"), or if that is NULL
 * by OpenTelemetry's variable of the environment. */
bool request_cumulative(const char *asked);

/* With `check`, passes over a mistake, so that the others are found too: moves the refusal to `found`, unless
 * its place already has one. Returns 0, or -1 without `check`. */
int request_pass(struct request *request, struct refusal *refusal);

void asked_release(struct asked *entry);

/* Releases what the request still owns. */
void request_release(struct request *request);
