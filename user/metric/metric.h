/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Metrics: numbers derived from events by the formulas of events/. A metric becomes part of a plan
 * by its events, which are counted in one group where they fit the counters, so that they speak of
 * the same time.
 */
#ifndef NHMTAP_METRIC_H
#define NHMTAP_METRIC_H

#include "event/event.h"
#include "host/host.h"
#include "tables/formula.h"
#include "refusal.h"

struct metric {
	char *name; /* as it was asked for: "ipc", "ipc:u" */
	const struct known_metric *known;
	struct formula formula;
	/* For each input of the formula its place in the plan's events; NO_EVENT for FORMULA_DURATION. */
	size_t *events;
#define NO_EVENT ((size_t)-1)
	int group;	 /* while it is planned: which of the groups its events are in */
	size_t explains; /* the event that it is reported beside; NO_EVENT: none */
};

struct metrics {
	struct metric *list;
	size_t nr;
};

/* A metric by name, without regard to case: one of the host's CPU, else one over perf's own events,
 * which any machine may have; NULL if there is none. */
const struct known_metric *metric_find(const struct host *host, const char *name);

/* Names of metrics that are spelled much like this one, ", " between them. Returns whether there are. */
bool metric_nearest(const struct host *host, const char *name, char *near, size_t size);

/*
 * Appends the events of these metrics (names with ',' between them) to events, in as few groups as
 * fit the counters: a metric joins the first group that has room for it. A name may have modifiers,
 * as events have them: they are its events', where the formula gives those none itself. Fills
 * metrics, which own their lists up to metrics_release(). Returns 0, or -1 with the refusal; what is
 * in metrics then is to be released all the same.
 */
int metrics_plan(struct metrics *metrics, const char *names, struct host *host, struct events *events,
		 struct refusal *refusal);

/*
 * Appends those of these metrics whose inputs are among the events already; each explains the first of its
 * formula's events. Metrics are those over perf's own events. No event is added.
 */
void metrics_explain(struct metrics *metrics, const char *names, const struct host *host,
		     const struct events *events);
void metrics_release(struct metrics *metrics);

/* One input in an interval. */
struct metric_input {
	double value;	      /* the count, scaled to the whole time, in the event's unit */
	double running_share; /* of the time it was enabled, from 0 to 1: below 1 it is an estimate */
	bool enabled;	      /* the target ran at all */
};

/* The value from the inputs, in the order of the formula's. Returns 0, or -1 with the reason why
 * there is none. */
int metric_value(const struct metric *metric, const struct metric_input *inputs, double *value, char *why,
		 size_t size);

#endif
