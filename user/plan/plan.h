/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A plan: the target and the events, each with a complete perf_event_attr. It follows from the options and
 * the facts about the host alone; nothing is opened. Each activity makes its plan with the functions below.
 */
#pragma once

#include <sys/types.h>

#include "base/refusal.h"
#include "event/event.h"
#include "host/host.h"
#include "metric/expectation.h"
#include "metric/metric.h"
#include "option/options.h"
#include "plan/target.h"

struct plan {
	struct target target;
	struct events events;
	struct metrics metrics;		  /* metrics to be computed from the events */
	struct expectations expectations; /* expectations of events and metrics */
	char default_events[128];	  /* buffer for the default events, if there are several */
	char default_why[160];		  /* why this event, if the user named none; "" otherwise */
};

/* The functions below return 0, or -1 with the refusal. The plan owns its lists up to plan_release(), which
 * may also be called on a zeroed plan and after a refusal. */

/* Adds the events and those that the metrics need. Both may be NULL. */
int plan_events(struct plan *plan, const char *events, const char *metrics, struct host *host,
		struct refusal *refusal);

/* Forms groups of the events of a counting plan, and assigns a counter to each event. */
void plan_groups(struct plan *plan, struct host *host);

/* Sets the fields that counting, sampling and tracing have in common, in all events. */
void plan_common(struct plan *plan, const struct host *host);

/* Checks the plan against what is known about the events and the host, and notes what their counts can't say
 * (plan/sides.h). Must be called last. */
int plan_check(struct plan *plan, const struct options *options, struct host *host, struct refusal *refusal);

/* Groups the events of a counting plan, sets the fields that counting needs, and checks the plan. It must be
 * called last. No event takes samples then: what its text says of them is left out, and a note says so. */
int plan_counts(struct plan *plan, const struct options *options, struct host *host, struct refusal *refusal);

/* Plans counting of the options' events (NULL: perf stat's defaults) on the options' target, without
 * expectations. */
int plan_counting(struct plan *plan, const struct options *options, struct host *host,
		  struct refusal *refusal);

/* Plans samples of `events` on the options' target, with period or frequency, and with stacks if
 * options->call_graph. The caller must call plan_check() after setting its own fields. */
int plan_sampling(struct plan *plan, const char *events, const struct options *options, struct host *host,
		  struct refusal *refusal);

/* The period and stacks of the events, but for companions: of all, or only of those that are precise, which
 * are always sampled. */
int plan_samples(struct plan *plan, bool all, const struct options *options, const struct host *host,
		 struct refusal *refusal);

/* Refuses --count together with --freq. */
int plan_one_pace(const struct options *options, struct refusal *refusal);

/* The events that are counted, or sampled, if the user names none. Sets plan->default_why. */
const char *plan_default_counted(struct plan *plan, struct host *host);
const char *plan_default_sampled(struct plan *plan, struct host *host);

/* Makes the plan that stat or profile would make for a command, without there being one. It is a plan for
 * sampling if the options or an event ask for samples. */
int plan_explain(struct plan *plan, const struct options *options, struct host *host,
		 struct refusal *refusal);

void plan_release(struct plan *plan);
