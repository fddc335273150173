/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of a session: everything is opened and attached, the command goes, intervals pass, it ends,
 * and the streams say how. One activity from the command line and many from CONFIG go the same way.
 */
#ifndef NHMTAP_RUN_H
#define NHMTAP_RUN_H

#include <jansson.h>

#include "option/options.h"
#include "output/output.h"
#include "refusal.h"

/* An activity that was asked for. */
struct asked {
	char *name;
	struct options options;
	size_t place;  /* among CONFIG's activities, from 0 */
	json_t *value; /* CONFIG's, which the options point into; NULL: it is from the command line */
	bool retry;    /* it is tried again when it can't start, or has died */
};

/* What a session is asked to do. */
struct request {
	struct asked **entries;
	size_t nr_entries;
	struct place_of_output *outputs;
	size_t nr_outputs;
	char **command;	     /* COMMAND …, NULL if there is none */
	const char *control; /* see control_open() */
	__u64 heartbeat_s;   /* how long a stream may be silent; 0: as long as there is nothing to say */
	const char *listen;  /* see listen_open() */
	const char *events_dir, *pmu_events, *host_root;
	const char *config; /* the file's path; NULL: it is one activity from the command line */
	json_t *document;   /* what it says, with variables expanded; owns what entries point to */
	bool verbose, quiet, live;
	bool check;		/* nothing is opened: start records say what would be, on stdout */
	const json_t *resource; /* attributes for start records, NULL if there are none */
	size_t names_bytes;	/* memory for names, 0: the default */
	size_t memory;		/* for all together, 0: there is no limit */
	double cpu_share;	/* of one CPU, likewise */
};

/* Reads the request again, for HUP; returns 0, or -1 with the refusal. */
typedef int (*read_fn)(struct request *request, const struct request *before, struct refusal *refusal);

/*
 * Runs a session; `again` reads its request again on HUP (NULL: HUP ends it). Takes the entries of the
 * request over. Returns the exit status, with a refusal filled in (asked not empty) if there is one to be
 * told.
 */
int run_session(struct request *request, read_fn again, struct refusal *refusal);

/* A session of the one activity that the options are of. */
int run_one(struct options *options, struct refusal *refusal);

void asked_release(struct asked *entry);

/* Releases what is left of a request. */
void request_release(struct request *request);

#endif
