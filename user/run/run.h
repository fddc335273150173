/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One run: everything is opened and attached, the target goes, intervals pass, it ends, and the
 * stream says how. What differs between counting and sampling is an activity.
 */
#ifndef NHMTAP_RUN_H
#define NHMTAP_RUN_H

#include <signal.h>
#include <time.h>
#include <jansson.h>

#include "collection/child.h"
#include "collection/counters.h"
#include "collection/self.h"
#include "host/host.h"
#include "options.h"
#include "output/output.h"
#include "plan/plan.h"
#include "refusal.h"
#include "run/control.h"
#include "run/hotplug.h"
#include "run/keys.h"

struct run {
	const struct activity *activity;
	const struct options *options;
	struct host host;
	struct plan plan;
	struct stream stream;
	struct counters *counters;
	struct self *self;    /* nhmtap's own instructions; NULL: not to be had */
	struct child child;
	struct hotplug hotplug;
	struct control control;
	bool off, was_off;    /* counting is switched off: now, and at some time of this interval */
	sigset_t ending;      /* signals that end the run */
	sigset_t signals;     /* the mask that the program was started with: the command's */
	__u64 repeat;         /* this execution of the command, from 1 */
	const char *reason;   /* why the run ended: the end record's */
	int ended_by;         /* the signal that ended it, 0 if none */
	enum status verdict;  /* the status of a run that went well: the activity's to set */
	__u64 drain_ns;       /* how often to drain, 0: never; the activity's to set, and to change */
	struct timespec began;                          /* CLOCK_MONOTONIC */
	struct timespec interval_began, interval_ended; /* the same; ended is set before report() */
	struct timespec interval_began_at;           /* the same moment, CLOCK_REALTIME */
	void *state;          /* the activity's own */
	struct chosen_keys keys;     /* of --by, where the activity has chosen them */
	struct addresses *addresses; /* where addresses lie; NULL where nobody asks. The activity opens it
				      * before anything is counted, the run listens to it and closes it */
};

struct activity {
	const char *command; /* "stat" */
	const void *details; /* for the activity itself */
	int (*plan)(struct plan *plan, const struct options *options, struct host *host,
		    struct refusal *refusal);
	/* Before anything is opened: refuses what the options ask for and the activity has not. */
	int (*check)(struct run *run, struct refusal *refusal);
	/* Adds what the start record is to say of this activity; may be NULL. */
	void (*describe)(struct run *run, json_t *start);
	/* Once the counters are open and before they are enabled. */
	int (*attach)(struct run *run, struct refusal *refusal);
	/* The same again at one place that was not open then; may be NULL. */
	int (*attach_at)(struct run *run, size_t place, struct refusal *refusal);
	/* What is to be read more often than is reported, every run->drain_ns; may be NULL. Returns as
	 * report. */
	int (*drain)(struct run *run);
	/* A descriptor, the activity's own, that is readable when something is to be drained before its time;
	 * may be NULL. */
	int (*wake_fd)(const struct run *run);
	/* Writes the records of an interval; last: the events are disabled and the run ends. Returns 0
	 * or -errno of the sink. */
	int (*report)(struct run *run, bool last);
	/* After the counters of one execution are read for the last time; undoes attach. */
	void (*detach)(struct run *run);
	/* Records behind all executions, and what the end record is to say; may be NULL. */
	int (*finish)(struct run *run, json_t *end);
	void (*release)(struct run *run);
};

/* Does it all. Returns the exit status, with a refusal filled in (asked not empty) if there is one to
 * be told. */
int run_activity(const struct activity *activity, const struct options *options,
		 struct refusal *refusal);

/* How long the interval was that is being reported. */
__u64 run_interval_ns(const struct run *run);

/* Members that the records of an interval have in common: start_time, duration_ns. */
void run_put_interval(const struct run *run, json_t *record);

/* cpus_missing: those of these CPUs (NULL: of all that are measured) that were offline for a part of
 * the interval or all of it; nothing where none was. */
void run_put_missing(const struct run *run, json_t *record, const struct cpus *of);

/* Reports what came since the report before. The next interval begins where this one ends, which is
 * before its records are written: no moment is in two of them, and none in neither. */
void run_report(struct run *run, bool last);

/* Switches counting. Returns 0 or -errno. */
int run_switch(struct run *run, bool on);

/* Switches it on for the first time, after --delay: the first interval begins only now. */
void run_begin_late(struct run *run);

#endif
