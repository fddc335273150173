// SPDX-License-Identifier: GPL-2.0-only
#include "branch/plan.h"

#include <stdio.h>

#include "base/array.h"
#include "base/list.h"
#include "event/branch_filter.h"
#include "tables/names.h"

/* Samples should follow branches, and each branch equally likely, so branches are the event: those of the
 * side that the filter leaves. A sample that comes on the other side has branches that an earlier one had,
 * too, and they would stand for what that side took. */
static const char *default_branch_event(struct plan *plan, const struct host *host, const char *filter)
{
	static const struct {
		const char *retired, *general; /* the first by its architectural name, as in most tables */
	} of_side[] = {{"BR_INST_RETIRED.ALL_BRANCHES", "branches"},
		       {"BR_INST_RETIRED.ALL_BRANCHES:u", "branches:u"},
		       {"BR_INST_RETIRED.ALL_BRANCHES:k", "branches:k"}};
	bool user = filter && list_has(filter, "u"), kernel = filter && list_has(filter, "k");
	int side = user == kernel ? 0 : user ? 1 : 2;

	if (!host->events || !host->events->nr_models ||
	    !known_event_find(host->events, of_side[0].retired)) {
		snprintf(plan->default_why, sizeof(plan->default_why), "a sample every so many branches");
		return of_side[side].general;
	}
	snprintf(plan->default_why, sizeof(plan->default_why),
		 "a sample every so many retired branches, by the table of %s", host->events->name);
	return of_side[side].retired;
}

int branch_check_by(const struct options *options, struct refusal *refusal)
{
	static const char *const about[] = {"edge", "range", "function", "callpair", "line", "symbol"};

	for (size_t i = 0; i < ARRAY_SIZE(about); i++)
		if (!options->by || list_has(options->by, about[i]))
			return 0;
	refuse(refusal, STATUS_USAGE, "option --by '%s'", options->by);
	because(refusal, "it names no branches: edge, function, callpair, line or range");
	return instead(refusal, "for branches: --by edge,%s", options->by);
}

/* Refuses ranges with a filter: the code between two branches is straight only if no branch between them is
 * left out. */
static int check_ranges(const struct options *options, const struct event *event, struct refusal *refusal)
{
	if (!list_has(options->by, "range") || event->attr.branch_sample_type & PERF_SAMPLE_BRANCH_ANY)
		return 0;
	refuse(refusal, STATUS_USAGE, "option --by '%s' with --filter %s", options->by, options->filter);
	because(refusal, "between two branches there is straight code only if all branches are recorded");
	return instead(refusal, "ask for --filter any, or for edges");
}

/* Refuses drivers without a last branch record. They may open the event nevertheless: core_pmu's and p4_pmu's
 * never look at branch_sample_type. */
int branch_check_record(struct host *host, struct refusal *refusal)
{
	const struct pmu *pmu = host_core_pmu(host);

	if (!pmu || pmu->max_precise < 0 || pmu->branches > 0)
		return 0;
	refuse(refusal, STATUS_REFUSED, "the last branch record");
	because(refusal, "the kernel's driver has none on this CPU (no caps/branches of the PMU '%s')",
		pmu->name);
	return instead(refusal, "profile shows where samples fall, without branches; --trace may do");
}

int plan_branch(struct plan *plan, const struct options *options, struct host *host, struct refusal *refusal)
{
	const char *text = options->events;

	if (branch_check_by(options, refusal))
		return -1;
	if (options->stream) {
		refuse(refusal, STATUS_USAGE, "option --stream");
		because(refusal, "the branches that come with samples are aggregated in the kernel");
		return instead(refusal, "for each branch as a record: --trace --stream");
	}
	if (branch_check_record(host, refusal))
		return -1;
	if (!text)
		text = default_branch_event(plan, host, options->filter);
	if (plan_sampling(plan, text, options, host, refusal))
		return -1;
	for (size_t i = 0; i < plan->events.nr; i++) {
		struct event *event = &plan->events.list[i];

		if (branch_filter_set(event, options->filter ? options->filter : "any", host->events,
				      refusal) ||
		    check_ranges(options, event, refusal))
			return -1;
		if (!options->filter)
			event_reason(event, "branch_sample_type", "the default: all, of the event's sides");
	}
	return plan_check(plan, options, host, refusal);
}
