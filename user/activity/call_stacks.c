// SPDX-License-Identifier: GPL-2.0-only
#include "activity/call_stacks.h"

#include "base/list.h"

static int refuse_without_stacks(const char *option, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "option --%s", option);
	because(refusal, "no stacks are asked for");
	return instead(refusal, "give -g as well");
}

int call_stacks_choose(struct activity *activity, struct refusal *refusal)
{
	struct options *options = activity->options;

	options->call_graph = options->call_graph || list_has(options->by, "stack") ||
			      session_keys(activity->session, activity->name, activity->command, "stack");
	if (!options->call_graph && (options->max_stack || options->unwind))
		return refuse_without_stacks(options->max_stack ? "max-stack" : "unwind", refusal);
	if (options->call_graph && options->by && !list_has(options->by, "stack"))
		options_join(options, &options->by, "stack");
	return 0;
}

unsigned int call_stacks_detail(const struct activity *activity)
{
	unsigned int detail = activity->keys.detail		      ? activity->keys.detail
			      : session_all_people(activity->session) ? CODE_SYMBOL | CODE_INLINED
								      : FRAME_DETAIL;

	return detail | (session_shows_linkage_names(activity->session) ? CODE_LINKAGE : 0);
}
