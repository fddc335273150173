// SPDX-License-Identifier: GPL-2.0-only
#include "stat/plan.h"

#include <stdlib.h>

#include "stat/expect.h"

/* The metrics that perf stat prints with its default events. */
#define DEFAULT_METRICS                                                                                      \
	"cpus_utilized,context_switches_per_second,migrations_per_second,page_faults_per_second,ghz,ipc,"    \
	"branches_per_second,branch_miss_ratio"

int plan_stat(struct plan *plan, const struct options *options, struct host *host, struct refusal *refusal)
{
	const char *text = options->events;
	const struct stat_options *own = options->own;
	bool metrics_asked;
	char *metrics;
	int err;

	if (target_plan(&plan->target, options, host, refusal) ||
	    expect_parse(plan, &own->expect, host, refusal))
		return -1;
	/* Cgroups that a pattern will find are then counted from their first instruction. */
	plan->target.by_switches = (!plan->target.per || plan->target.per == PER_CGROUP) &&
				   target_by_patterns(&plan->target, host);
	if (options->repeats && !plan->target.command) {
		refuse(refusal, STATUS_USAGE, "option --repeat");
		because(refusal, "there is no command to run again");
		return instead(refusal, "give -- COMMAND");
	}
	metrics_asked = options->metrics || expect_counts(plan);
	if (!text && !metrics_asked)
		text = plan_default_counted(plan, host);
	metrics = expect_metrics(plan, options);
	err = plan_events(plan, text, metrics, host, refusal) || expect_bind(plan, host, refusal);
	free(metrics);
	if (err)
		return -1;
	if (!options->events && !metrics_asked)
		metrics_explain(&plan->metrics, DEFAULT_METRICS, host, &plan->events);
	return plan_counts(plan, options, host, refusal);
}
