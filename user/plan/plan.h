/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is going to be done: the target and the events, each with a complete perf_event_attr. A plan
 * follows from the options and the facts about the host alone; it opens nothing.
 */
#ifndef NHMTAP_PLAN_H
#define NHMTAP_PLAN_H

#include <sys/types.h>

#include "event/event.h"
#include "host/host.h"
#include "metric/expectation.h"
#include "metric/metric.h"
#include "options.h"
#include "plan/target.h"
#include "refusal.h"

struct plan {
	struct target target;
	struct events events;
	struct metrics metrics; /* what is to be derived from the events */
	struct expectations expectations; /* of both */
	char default_why[160]; /* why this event, where the user named none; "" otherwise */
};

/*
 * Plans counting or sampling. Returns 0, or -1 with the refusal filled in. The plan owns its lists
 * up to plan_release(), which may also be called on a zeroed one or after a refusal.
 */
int plan_stat(struct plan *plan, const struct options *options, struct host *host,
	      struct refusal *refusal);
int plan_profile(struct plan *plan, const struct options *options, struct host *host,
		 struct refusal *refusal);
/* Plans samples of loads with their addresses, latencies and sources: the CPU's load-latency event with
 * the threshold of --ldlat, or the events that were asked for. */
int plan_mem(struct plan *plan, const struct options *options, struct host *host,
	     struct refusal *refusal);
/* Plans counting a matrix of off-core requests: an event for each of its cells, in their order. */
int plan_offcore(struct plan *plan, const struct options *options, struct host *host,
		 struct refusal *refusal);
/* Sampling with the branches that led to each sample. */
int plan_branch(struct plan *plan, const struct options *options, struct host *host,
		struct refusal *refusal);
/* Tracing: every branch of the target's threads, and a clock that tells how long they ran. */
int plan_trace(struct plan *plan, const struct options *options, struct host *host,
	       struct refusal *refusal);
/* Plans what either would, for a command that is not there: sampling where the options or an event ask
 * for it. */
int plan_explain(struct plan *plan, const struct options *options, struct host *host,
		 struct refusal *refusal);
void plan_release(struct plan *plan);

#endif
