/* SPDX-License-Identifier: GPL-2.0-only */
/* An activity measures something: it has a plan, counters, an interval, and records. A session runs one or
 * several. Its operations implement what differs between counting, sampling and tracing. */
#pragma once

#include <time.h>
#include <jansson.h>

#include "activity/cgroup_watch.h"
#include "activity/hotplug.h"
#include "activity/keys.h"
#include "base/clock.h"
#include "base/refusal.h"
#include "collection/counters.h"
#include "option/options.h"
#include "plan/plan.h"
#include "session/session.h"

struct activity_ops;
struct targets;

struct activity {
	const char *name;    /* in records, and for --control */
	const char *command; /* "stat" */
	struct options *options;
	struct session *session;
	const struct activity_ops *ops;
	const void *details; /* data of the operations, if several commands share them */
	struct plan plan;
	char rivals[128];	   /* names of the session's other activities that want its counters */
	struct counters *counters; /* NULL: not open */
	__u64 forks;	   /* proc_forks() before they were opened; 0: what it measures did not run then */
	bool streams;	   /* each sample or branch is also written as a record */
	bool heavy;	   /* each key, and each entry, has histograms, so half as many are kept */
	bool off, was_off; /* counting is off: now; at some time of this interval */
	bool switched;	   /* counting was off at some time of this execution */
	__u64 drain_ns;	   /* period of drain(), 0: never; set and changed by the operations */
	struct timespec began;				/* CLOCK_MONOTONIC; zero: not yet */
	struct timespec interval_began, interval_ended; /* CLOCK_MONOTONIC; ended: set before report() */
	struct timespec interval_began_at;		/* begin of the interval by CLOCK_REALTIME */
	struct clock_lead interval_lead;		/* at the begin of the interval */
	void *state;					/* private to the operations */
	struct chosen_keys keys;			/* keys of --by, if the operations use them */
	struct reader *reader; /* maps addresses to files; NULL if not needed. Opened by the operations,
				  before counting begins */
	struct hotplug hotplug;
	struct cgroup_watch cgroup_watch;
	const char *reason; /* why it ended; NULL: it is running */

	/* What it waits for in the loop: */
	struct source *interval, *drain, *deadline, *delay, *wake, *keep;
	struct targets *targets;
	__u64 intervals_left;		   /* 0: no limit */
	bool reported;			   /* an interval of this execution was reported */
	struct share_member *share_member; /* NULL: the session's cost is not limited */
	__u64 spent, spent_before; /* by the session, at the interval's end and begin: cpu_share_spent() */
	struct doubts *doubts;	   /* see doubt.h; NULL: nothing was looked at yet */
	__u64 merged; /* intervals that the next report covers: there was no room for earlier ones */
};

/* Numbers for the line of progress. */
struct so_far {
	bool sampled; /* the activity takes samples */
	__u64 samples, lost;
};

struct activity_ops {
	int (*plan)(struct plan *plan, const struct options *options, struct host *host,
		    struct refusal *refusal);
	/* Refuses options that the activity does not support. Called before anything is opened. */
	int (*check)(struct activity *activity, struct refusal *refusal);
	/* Adds this activity's members to the start record; may be NULL. */
	void (*describe)(struct activity *activity, json_t *start);
	/* Adds the memory that it needs and wants; may be NULL. */
	void (*want)(const struct activity *activity, struct limits *limits);
	/* Called before the counters of an execution are opened: it may change which of its events the plan
	 * has; may be NULL. */
	void (*prepare)(struct activity *activity);
	/* Called after the counters are opened and before they are enabled; may be NULL. */
	int (*attach)(struct activity *activity, struct refusal *refusal);
	/* Attaches at a place that was opened later; may be NULL. */
	int (*attach_at)(struct activity *activity, size_t place, struct refusal *refusal);
	/* Undoes that before the events there are closed; NULL if attach_at is. */
	void (*detach_at)(struct activity *activity, size_t place);
	/* Reads what must be read more often than it is reported; called every drain_ns; may be NULL. Returns
	 * the same as report(). */
	int (*drain)(struct activity *activity);
	/* Returns a descriptor, owned by the activity, that is readable when drain() should be called early;
	 * may be NULL. */
	int (*wake_fd)(const struct activity *activity);
	/* Returns what the session's CPU share needs to change periods; NULL if the activity takes no
	 * samples. May return NULL if there is no share. */
	const struct sampled_part *(*sampled_part)(const struct activity *activity);
	/* Adds the samples taken since the beginning; may be NULL. */
	void (*so_far)(struct activity *activity, struct so_far *sum);
	/* Writes the records of an interval. `last`: the events are disabled and the activity ends. Returns 0
	 * or -errno of the streams. */
	int (*report)(struct activity *activity, bool last);
	/* Called after the counters of an execution were read for the last time; undoes attach.
	 * May be NULL. */
	void (*detach)(struct activity *activity);
	/* Writes records after all executions, and adds members to the end record; may be NULL. */
	int (*finish)(struct activity *activity, json_t *end);
	void (*release)(struct activity *activity);
};

/* What a command that measures has in addition to its options: see struct command. */
struct activity_type {
	/* Completes the options, and sets `ops` and `details` accordingly. Returns 0, or -1
	 * with the refusal. */
	int (*choose)(struct activity *activity, struct refusal *refusal);
	const char *records; /* list of the types of the records that its intervals may have */
	bool streams;	     /* each sample is a record, without --stream */
};

/* The process of the session's command, if the activity measures it: alone, or with everything on its CPUs. 0
 * for an activity that measures processes which exist already, or if there is no command. */
pid_t activity_child(const struct activity *activity);

/* Whether what it measures runs already, and may make processes while events are opened. */
bool activity_runs_already(const struct activity *activity);

/* Opens the plan's events, and sets activity->forks. Returns as counters_open(). */
int activity_open_counters(struct activity *activity, struct refusal *refusal);

/* Whether the kernel has ended the counting of what the activity measures: of the session's command, see
 * child_cut(); or of processes and threads, see counters_taken(). */
bool activity_cut(const struct activity *activity);

/* Whether a signal has ended the execution that is reported, of several that were asked for. Its counts are
 * not those of an execution, and belong in no mean. */
bool activity_partial(const struct activity *activity);

/* Functions for the operations: */

/* The attach() of operations that read all counters at once (a tally): prepares for that, if they will be
 * read more than once. Never fails. */
int activity_attach_reader(struct activity *activity, struct refusal *refusal);

/* Writes a record and releases it. Returns 0 or -errno of the streams. */
int activity_write(struct activity *activity, json_t *record);

/* Says on stderr what an event of this activity, or a row, comes to. Names the activity where there are
 * others, which may have the same event. */
void activity_say(const struct activity *activity, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same for a record given as a list of its members, which is emptied. */
int activity_write_fields(struct activity *activity, const char *type, struct fields *fields);

/* Length of the interval that is being reported. */
__u64 activity_interval_ns(const struct activity *activity);

/* The cost of the session in that interval as a share of a CPU: CPU time divided by time. */
double activity_share(const struct activity *activity);

/* Adds the members that all records of an interval have: start_time, duration_ns, merged. */
void activity_put_interval(const struct activity *activity, json_t *record);
/* Adds the name of an event, and which of this name it is, if not the first. */
void activity_put_event(json_t *record, const struct event *event);
/* The same for a list of members. `name` is the event's as text that is valid JSON, and outlives the list. */
void activity_add_event(struct fields *fields, const struct event *event, const json_t *name);

/* The same for a list of members. `start_time` is interval_began_at as text. */
void activity_add_interval(const struct activity *activity, struct fields *fields, const char *start_time);

/* Value of cgroups_late: what was used in cgroups before they were measured. NULL: nothing that is known of.
 */
json_t *activity_cgroups_late(const struct activity *activity, int of);

/* Functions for code that follows CPUs and cgroups as they come and go: */

/* Opens, attaches and enables what is measured at a place. Returns 0, or -1 with the reason in
 * the refusal. */
int activity_join_place(struct activity *activity, size_t place, struct refusal *refusal);

/* Detaches from all events of a CPU and a cgroup; -1: of any CPU, of any cgroup. */
void activity_detach_places(struct activity *activity, int cpu, int cgroup);
