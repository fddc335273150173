/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An activity is what is measured: its plan, its counters, its interval, its records. A session runs
 * one or many. What differs between counting, sampling and tracing are its operations.
 */
#ifndef NHMTAP_ACTIVITY_H
#define NHMTAP_ACTIVITY_H

#include <time.h>
#include <jansson.h>

#include "activity/cgroup_watch.h"
#include "activity/hotplug.h"
#include "activity/keys.h"
#include "clock.h"
#include "collection/counters.h"
#include "option/options.h"
#include "plan/plan.h"
#include "refusal.h"
#include "session/session.h"

struct activity_ops;
struct targets;

struct activity {
	const char *name;    /* in records, and for --control */
	const char *command; /* "stat" */
	struct options *options;
	struct session *session;
	const struct activity_ops *ops;
	const void *details; /* for the operations, where several commands share them */
	struct plan plan;
	struct counters *counters; /* NULL: not open */
	bool streams;		   /* each sample or branch is a record as well */
	bool off, was_off;	   /* counting is switched off: now, and at some time of this interval */
	__u64 drain_ns;		   /* how often to drain, 0: never; the operations' to set, and to change */
	struct timespec began;	   /* CLOCK_MONOTONIC; zero: it never did */
	struct timespec interval_began, interval_ended; /* the same; ended is set before report() */
	struct timespec interval_began_at;		/* the same moment, CLOCK_REALTIME */
	struct clock_lead interval_lead;		/* the same moment */
	void *state;					/* the operations' own */
	struct chosen_keys keys;			/* of --by, where the operations have chosen them */
	struct reader *reader; /* maps addresses to files; NULL if not needed. The operations open it before
				  anything is counted */
	struct hotplug hotplug;
	struct cgroup_watch cgroup_watch;
	const char *reason; /* why it ended; NULL: it is running */

	/* What it waits for: */
	struct source *interval, *drain, *deadline, *delay, *wake, *keep;
	struct targets *targets;
	__u64 intervals_left;		   /* 0: they end with the session */
	bool reported;			   /* an interval of it has been */
	struct share_member *share_member; /* NULL: the session has no share to keep */
	__u64 spent, spent_before; /* by the session, when the interval ended, and began: cpu_share_spent() */
	__u64 merged;		   /* intervals that the next report covers: those before it found no room */
};

/* For the line of progress. */
struct so_far {
	bool sampled; /* something is sampled at all */
	__u64 samples, lost;
};

struct activity_ops {
	int (*plan)(struct plan *plan, const struct options *options, struct host *host,
		    struct refusal *refusal);
	/* Before anything is opened: refuses what the options ask for and the activity has not. */
	int (*check)(struct activity *activity, struct refusal *refusal);
	/* Adds what the start record is to say of this activity; may be NULL. */
	void (*describe)(struct activity *activity, json_t *start);
	/* Adds what it wants of memory; may be NULL. */
	void (*want)(const struct activity *activity, struct limits *limits);
	/* Once the counters are open and before they are enabled; may be NULL. */
	int (*attach)(struct activity *activity, struct refusal *refusal);
	/* Attaches at one place that was not open then; may be NULL. */
	int (*attach_at)(struct activity *activity, size_t place, struct refusal *refusal);
	/* Undoes it, before the events there are closed; NULL where there is no attach_at. */
	void (*detach_at)(struct activity *activity, size_t place);
	/* What is to be read more often than is reported, every drain_ns; may be NULL. Returns as report. */
	int (*drain)(struct activity *activity);
	/* A descriptor, the activity's own, that is readable when something is to be drained before its time;
	 * may be NULL. */
	int (*wake_fd)(const struct activity *activity);
	/* What the session's share changes the periods of; may be NULL, and return NULL. */
	const struct sampled_part *(*sampled_part)(const struct activity *activity);
	/* Adds what has been sampled since the beginning; may be NULL. */
	void (*so_far)(struct activity *activity, struct so_far *sum);
	/* Writes the records of an interval; last: the events are disabled and the activity ends. Returns 0
	 * or -errno of the streams. */
	int (*report)(struct activity *activity, bool last);
	/* After the counters of one execution are read for the last time; undoes attach. May be NULL. */
	void (*detach)(struct activity *activity);
	/* Writes the records after all executions, and adds to the end record; may be NULL. */
	int (*finish)(struct activity *activity, json_t *end);
	void (*release)(struct activity *activity);
};

/* What a command that measures is, beside its options: see struct command. */
struct activity_type {
	/* Completes the options, and sets ops and details by them. Returns 0, or -1 with the refusal. */
	int (*choose)(struct activity *activity, struct refusal *refusal);
};

/*
 * The life of an activity. Each returns 0, or -1 with the refusal. In both cases activity_close() closes
 * what was opened, and activity_release() releases the rest.
 */

/* Plans it; the session's streams are open. Opens nothing. */
int activity_plan(struct activity *activity, struct refusal *refusal);

/* Opens and attaches everything. The session's command has been forked, and waits. */
int activity_open(struct activity *activity, struct refusal *refusal);

/* Switches counting on, unless the command's exec will, and begins the first interval. `running`: the
 * command runs already. */
int activity_begin(struct activity *activity, bool running, struct refusal *refusal);

/* Registers with the session's loop what the activity waits for, and removes it. */
void activity_wait(struct activity *activity);
void activity_wait_no_more(struct activity *activity);

/* Closes what is open, after the last report. */
void activity_close(struct activity *activity);
void activity_release(struct activity *activity);

/*
 * Reports what came since the report before. The next interval begins where this one ends, which is before
 * its records are written, so every moment is in exactly one interval. Where the output has no room for it,
 * an interval that is not the last is not taken: counters and tables go on, and the next report covers it as
 * well.
 */
void activity_report(struct activity *activity, bool last);

/* Switches counting. Returns 0 or -errno. */
int activity_switch(struct activity *activity, bool on);

/* For the operations: */

/* attach() of those that read all counters at once (a tally): gets ready for it if they will be read more
 * than once. Never fails. */
int activity_attach_reader(struct activity *activity, struct refusal *refusal);

/* Writes a record, which is consumed. Returns 0 or -errno of the streams. */
int activity_write(struct activity *activity, json_t *record);

/* The same for a record as a list of its members, which is emptied. */
int activity_write_fields(struct activity *activity, const char *type, struct fields *fields);

/* How long the interval was that is being reported. */
__u64 activity_interval_ns(const struct activity *activity);

/* What the session has cost in it, as a share of a CPU: CPU time by time. */
double activity_share(const struct activity *activity);

/* Members that the records of an interval have in common: start_time, duration_ns, merged. */
void activity_put_interval(const struct activity *activity, json_t *record);

/* The same as members of a list; start_time is the text of interval_began_at. */
void activity_add_interval(const struct activity *activity, struct fields *fields, const char *start_time);

/* cpus_missing: those of these CPUs (NULL: of all that are measured) that were offline for a part of
 * the interval or all of it; nothing, or NULL, where none was. */
json_t *activity_missing(const struct activity *activity, const struct cpus *of);

/* cgroups_missing: the same of the target's cgroups; `of`: only this one, by its index; -1: all. */
json_t *activity_cgroups_missing(const struct activity *activity, int of);

/* Both. */
void activity_put_missing(const struct activity *activity, json_t *record, const struct cpus *of, int cgroup);

/* For what follows places that come and go: */

/* Opens, attaches and enables what is measured at a place. Returns 0, or -1 with the reason. */
int activity_join_place(struct activity *activity, size_t place, struct refusal *refusal);

/* Detaches from the events of a CPU and a cgroup; -1: of any. */
void activity_detach_places(struct activity *activity, int cpu, int cgroup);

#endif
