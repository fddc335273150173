/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Metrics: numbers that are computed from events, by the formulas in events/. A plan has the events of its
 * metrics. Those of one metric are in one group if they fit the counters, so that they are counted during the
 * same time.
 */
#pragma once

#include "base/refusal.h"
#include "event/event.h"
#include "host/host.h"
#include "tables/formula.h"

struct metric {
	char *name; /* the user's spelling: "ipc", "ipc:u" */
	const struct known_metric *known;
	struct formula formula;
	/* For each input of the formula the index of its event in the plan; NO_EVENT for FORMULA_DURATION. */
	size_t *events;
#define NO_EVENT ((size_t)-1)
	int group;	 /* the group of its events; used during planning only */
	size_t explains; /* the event with which it is reported; NO_EVENT: none */
};

struct metrics {
	struct metric *list;
	size_t nr;
};

/* A metric by name, ignoring case. It is one of the host's CPU, or else one over perf's own events, which any
 * machine may have; NULL if there is none. */
const struct known_metric *metric_find(const struct host *host, const char *name);

/* Writes the names of metrics that are spelled similarly, separated by ", ". Returns whether there are
 * any. */
bool metric_nearest(const struct host *host, const char *name, char *near, size_t size);

/*
 * Plans these metrics (names separated by ','): appends their events to `events`, in as few groups as fit the
 * counters, where a metric joins the first group that has room for it. A name may have modifiers, as events
 * do: they apply to those of its events that have none in the formula. A pattern (fnmatch(3), ignoring case)
 * stands for all metrics that it fits and whose events the machine has; it is refused if that is none. Fills
 * `metrics`, which own their lists up to metrics_release(). Returns 0, or -1 with the refusal; `metrics` must
 * be released in either case.
 */
int metrics_plan(struct metrics *metrics, const char *names, struct host *host, struct events *events,
		 struct refusal *refusal);

/* Appends those of the named metrics whose inputs are all among the events already, without adding any event.
 * Each is reported with the first event of its formula. Only metrics over perf's own events are looked up. */
void metrics_explain(struct metrics *metrics, const char *names, const struct host *host,
		     const struct events *events);
void metrics_release(struct metrics *metrics);

/* The value of one input in an interval. */
struct metric_input {
	double value;	      /* the count, scaled to the enabled time, in the event's unit */
	double running_share; /* share of the enabled time, from 0 to 1; below 1 the count is an estimate */
	bool enabled;	      /* whether the target ran at all */
};

/* Computes the value. The inputs are in the order of the formula's. Returns 0, or -1 with the reason why
 * there is no value. */
int metric_value(const struct metric *metric, const struct metric_input *inputs, double *value, char *why,
		 size_t size);
