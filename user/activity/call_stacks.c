// SPDX-License-Identifier: GPL-2.0-only
#include "activity/call_stacks.h"

#include "activity/sampling.h"
#include "base/list.h"
#include "record/called.h"

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
			      session_keys(activity->session, activity->command, "stack");
	if (!options->call_graph && (options->max_stack || options->unwind))
		return refuse_without_stacks(options->max_stack ? "max-stack" : "unwind", refusal);
	if (options->call_graph && options->by && !list_has(options->by, "stack"))
		options_join(options, &options->by, "stack");
	return 0;
}

unsigned int call_stacks_detail(const struct activity *activity)
{
	unsigned int detail = activity->keys.detail		      ? activity->keys.detail
			      : session_all_people(activity->session) ? CODE_SYMBOL
								      : FRAME_DETAIL;

	return detail | (session_shows_linkage_names(activity->session) ? CODE_LINKAGE : 0);
}

struct called *call_stacks_new(const struct activity *activity, struct codes *codes,
			       const struct layout *layout)
{
	return called_new(&activity->session->host, codes, call_stacks_detail(activity),
			  sampling_unwinds(activity), layout);
}

void call_stacks_put(const struct activity *activity, json_t *record, const struct layout *layout,
		     struct reading *reading)
{
	struct codes *codes = reader_codes(activity->reader);
	struct called **early = sampling_called(activity, layout);
	struct called *called = *early ? *early : call_stacks_new(activity, codes, layout);

	*early = NULL;
	called_add(called, reading);
	called_put(called, record, sampling_most_entries(activity, called_count(called)));
	called_release(called);
}
