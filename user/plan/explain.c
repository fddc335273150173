// SPDX-License-Identifier: GPL-2.0-only
/* The plan that explain shows: the one that stat or profile would make for a command. */
#include "event/branch_filter.h"
#include "plan/plan.h"
#include "plan/rules.h"
#include "plan/modelled.h"
#include "plan/sides.h"
#include "plan/units.h"

/* explain takes events as arguments, with -e, or both, and metrics. Without any, it shows the default. */
static int parse_arguments(struct plan *plan, const struct options *options, bool sampling, struct host *host,
			   struct refusal *refusal)
{
	const char *text = options->events;

	if (!text && !options->nr_rest && !options->metrics)
		text = sampling ? plan_default_sampled(plan, host) : plan_default_counted(plan, host);
	if (text && events_parse(text, host, &plan->events, refusal))
		return -1;
	for (int i = 0; i < options->nr_rest; i++)
		if (events_parse(options->rest[i], host, &plan->events, refusal))
			return -1;
	return plan_events(plan, NULL, options->metrics, host, refusal);
}

int plan_explain(struct plan *plan, const struct options *options, struct host *host, struct refusal *refusal)
{
	static char *command[] = {"true", NULL};
	bool sampling = options->period || options->frequency || options->filter || options->call_graph;

	plan->target.command = command;
	if (plan_one_pace(options, refusal) || parse_arguments(plan, options, sampling, host, refusal))
		return -1;
	/* A list of -e is planned as stat would plan it. Arguments are planned each by itself. */
	if (options->events && !options->nr_rest && !sampling) {
		for (size_t i = 0; i < plan->events.nr; i++)
			if (!plan->events.list[i].attr.precise_ip)
				event_leave_samples_out(&plan->events.list[i]);
		plan_groups(plan, host);
		if (units_fit(&plan->events, refusal))
			return -1;
	}
	plan_common(plan, host);
	if (plan_samples(plan, sampling, options, host, refusal))
		return -1;
	for (size_t i = 0; options->filter && i < plan->events.nr; i++)
		if (branch_filter_set(&plan->events.list[i], options->filter, host->events, refusal))
			return -1;
	sides_settle(&plan->events, host);
	modelled_settle(&plan->events, host);
	return rules_check(&plan->events, &plan->target, host, options->force, refusal);
}
