// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap profile: samples of any event, by where and in whom they were taken, and by the calls that led
 * there. */
#include <stdio.h>

#include "command/command.h"
#include "record/stacks.h"
#include "run/addresses.h"
#include "run/sampling.h"

/* What a frame says of itself where there is room for all. */
#define FULL_DETAIL (CODE_PLACE | CODE_SYMBOL | CODE_LINE)

static void put_stacks(const struct run *run, json_t *record, const struct layout *layout,
		       struct reading *reading)
{
	unsigned int detail = run->keys.detail		       ? run->keys.detail
			      : run->stream.format == FORMAT_TABLE ? CODE_SYMBOL
							           : FULL_DETAIL;
	struct called *called = called_of(&run->host, addresses_codes(run->addresses), detail, layout,
					  reading);

	called_put(called, record, sampling_most_entries(run, called_count(called)));
	called_release(called);
}

static int refuse_depth(struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "option --max-stack");
	because(refusal, "no stacks are asked for");
	return instead(refusal, "give -g as well");
}

static int profile_calls(const struct options *options, struct refusal *refusal)
{
	static const struct sampling stacks = {
		.command = "profile",
		.aggregation = "profile",
		.ahead = "frames",
		.put = put_stacks,
		.places = true,
		.names = FULL_DETAIL,
		.code_keys = stack_code_keys,
		.plan = plan_profile,
	};
	struct options chosen = *options;
	char by[256];

	chosen.call_graph = true;
	if (!options_by(options, "stack")) {
		snprintf(by, sizeof(by), "%s,stack", options->by ? options->by : "comm");
		chosen.by = by;
	}
	return sampling_run(&stacks, &chosen, refusal);
}

int command_profile(const struct options *options, struct refusal *refusal)
{
	static const struct sampling profile = {
		.command = "profile",
		.aggregation = "profile",
		.default_keys = "comm,ip",
		.code_keys = ip_code_keys,
		.plan = plan_profile,
	};

	if (options->call_graph || options->format == FORMAT_FOLDED || options->format == FORMAT_PPROF ||
	    options_by(options, "stack"))
		return profile_calls(options, refusal);
	if (options->max_stack) {
		refuse_depth(refusal);
		return refusal->status;
	}
	return sampling_run(&profile, options, refusal);
}
