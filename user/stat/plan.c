// SPDX-License-Identifier: GPL-2.0-only
#include "stat/plan.h"

#include <stdlib.h>

#include "stat/expect.h"

int plan_stat(struct plan *plan, const struct options *options, struct host *host, struct refusal *refusal)
{
	const char *text = options->events;
	const struct stat_options *own = options->own;
	char *metrics;
	int err;

	if (target_plan(&plan->target, options, host, refusal) ||
	    expect_parse(plan, &own->expect, host, refusal))
		return -1;
	if (options->repeats && !plan->target.command) {
		refuse(refusal, STATUS_USAGE, "option --repeat");
		because(refusal, "there is no command to run again");
		return instead(refusal, "give -- COMMAND");
	}
	if (!text && !options->metrics && !own->expect.nr)
		text = plan_default_counted(plan, host);
	metrics = expect_metrics(plan, options);
	err = plan_events(plan, text, metrics, host, refusal) || expect_bind(plan, host, refusal);
	free(metrics);
	if (err)
		return -1;
	plan_groups(plan, host);
	plan_common(plan, host);
	return plan_check(plan, options, host, refusal);
}
