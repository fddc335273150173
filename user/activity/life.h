/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of an activity, in the order of calls. Those that can fail return 0, or -1 with the refusal. In
 * both cases activity_close() must be called to close what was opened, and activity_release() to release the
 * rest.
 */
#pragma once

#include <stdbool.h>

#include "base/refusal.h"

struct activity;
struct options;

/* Whether an activity with these options writes each sample or branch as a record. */
bool activity_asked_to_stream(const struct options *options);

/* Makes the plan. The session's streams must be open. Opens nothing. */
int activity_plan(struct activity *activity, struct refusal *refusal);

/* Opens and attaches everything. The session's command must be forked, and waiting to be executed. */
int activity_open(struct activity *activity, struct refusal *refusal);

/* Enables counting, unless the command's exec will do so, and begins the first interval. `running`: the
 * command is already running. */
int activity_begin(struct activity *activity, bool running, struct refusal *refusal);

/* Registers with the session's loop what the activity waits for, and unregisters it. */
void activity_wait(struct activity *activity);
void activity_wait_no_more(struct activity *activity);

/* Closes what is open. Must be called after the last report. */
void activity_close(struct activity *activity);
void activity_release(struct activity *activity);

/*
 * Reports what was measured since the last report. The next interval begins where this one ends, which is
 * before its records are written, so every moment is in exactly one interval. If the output has no room for
 * an interval, and it is not the last one, nothing is read: counters and tables go on, and the next report
 * covers that interval as well.
 */
void activity_report(struct activity *activity, bool last);

/* Switches counting on or off. Returns 0 or -errno. */
int activity_switch(struct activity *activity, bool on);
