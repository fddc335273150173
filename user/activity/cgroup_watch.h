/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Follows cgroups of the target that come and go while an activity measures them. When a cgroup is removed,
 * its events are closed. When a cgroup of the same path, or one that matches a pattern of the target, is
 * created, they are opened there. This is reported in `target` records, and in the records of intervals that
 * lack a cgroup that was asked for by its path.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>
#include <linux/types.h>

struct activity;
struct source;

struct cgroup_watch {
	size_t nr; /* number of the target's cgroups */
	struct watched_cgroup {
		__u64 id;      /* id of one that was found by a pattern */
		bool away;     /* no such cgroup exists, or its events could not be opened */
		bool missed;   /* `away` was true at some time of this interval */
		bool refused;  /* events could not be opened, and this was reported */
		bool seen;     /* found by the current search */
		bool summed;   /* the table of sums still has some of its */
		bool reported; /* a record has had its counts */
		bool late;     /* something may have run in it before it was measured, in this interval */
		__u64 late_ns; /* CPU time that was used in it before it was measured, in this interval */
	} * list;
	bool told;	     /* see warn_of_late_cgroups() */
	bool compared;	     /* see warn_of_unfit_patterns() */
	__u64 late, late_ns; /* sums over all, also those whose place another has taken */
	__u64 unseen; /* cgroups that fitted a pattern and were gone when they were looked for, likewise */
	__u64 newest, newest_before; /* greatest id of a cgroup that had sums: at the last gathering, the one
					before */
	size_t sums;		     /* of cgroups on CPUs, at the last gathering */
	size_t unknown; /* those of them whose cgroup is not known; by samples: such cgroups in this interval
			 */
	struct verdict {
		__u64 id;
		bool wanted;
	} verdicts[256]; /* by id: see cgroup_watch_wants() */
	bool follows;	 /* the kernel tells the path of each cgroup that is made */
	bool looked;	 /* what was there at the begin has been found and told */
	json_t *untold;	 /* records of what was found before there was a start record */
	struct source *look;
	struct cgroup_notices *notices; /* NULL: there are none */
	struct source *noticed, *again;
};

/* Must be called after the activity's counters were opened, and before they are closed. */
void cgroup_watch_begin(struct activity *activity);
void cgroup_watch_end(struct activity *activity);

/* Searches for cgroups that match the target's patterns. Must be called before COMMAND runs. */
void cgroup_watch_first(struct activity *activity);

/* Tells what was found, and lets the loop search twice an interval and at least once a second. */
void cgroup_watch_wait(struct activity *activity);
void cgroup_watch_wait_no_more(struct activity *activity);

/* Searches now. Must be called before an interval is reported. */
void cgroup_watch_look(struct activity *activity);

/* If counts are summed up per cgroup at switches between cgroups, reads these sums. Must be called before
 * counts are read. */
void cgroup_watch_gather(struct activity *activity);

/* Whether samples of the cgroup with this id belong to the target, if cgroups are told apart by samples. One
 * whose path is not known does not; cgroups_late says so. */
bool cgroup_watch_wants(struct activity *activity, __u64 id);

/* Must be called when the next interval begins. */
void cgroup_watch_next(struct activity *activity);
