// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap profile: samples of any event, by where and in whom they were taken. */
#include "command/command.h"
#include "run/sampling.h"

int command_profile(const struct options *options, struct refusal *refusal)
{
	static const struct sampling profile = {
		.command = "profile",
		.aggregation = "profile",
		.default_keys = "comm,ip",
		.plan = plan_profile,
	};

	return sampling_run(&profile, options, refusal);
}
