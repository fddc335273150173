/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cgroups of the target that come and go while an activity measures them. The events of one that is removed
 * are closed; where a cgroup of the same path, or one that matches a pattern of the target, is made again,
 * they are opened there. The stream says so, in `target` records and in the records of the intervals that
 * lack one that was asked for by its path.
 */
#ifndef NHMTAP_CGROUP_WATCH_H
#define NHMTAP_CGROUP_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct activity;
struct source;

struct cgroup_watch {
	size_t nr; /* of the target's cgroups */
	struct watched_cgroup {
		__u64 id;     /* of one that was found */
		bool away;    /* there is none of this path, or its events could not be opened */
		bool missed;  /* it was away at some time of this interval */
		bool refused; /* which has been told */
		bool seen;    /* at this look */
	} * list;
	struct source *look;
};

/* Once the activity's counters are open; undone when they are closed. */
void cgroup_watch_begin(struct activity *activity);
void cgroup_watch_end(struct activity *activity);

/* Looks at once for what the target's patterns fit, and from the loop twice an interval and once a second at
 * least. */
void cgroup_watch_wait(struct activity *activity);
void cgroup_watch_wait_no_more(struct activity *activity);

/* Looks now: before an interval is reported. */
void cgroup_watch_look(struct activity *activity);

/* Takes in what has been counted of each cgroup, where that is summed up at the switches between them: before
 * counts are read. */
void cgroup_watch_gather(struct activity *activity);

/* The next interval begins. */
void cgroup_watch_next(struct activity *activity);

#endif
