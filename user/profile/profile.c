// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap profile: samples of any event, by where and in whom they were taken, and by the calls that led
 * there. */
#include <string.h>

#include "list.h"
#include "activity/activity.h"
#include "activity/sampling.h"
#include "option/command.h"
#include "plan/unwind.h"
#include "profile/stacks.h"
#include "record/type.h"

/* What a frame says of itself where there is room for all. */
#define FULL_DETAIL (CODE_PLACE | CODE_SYMBOL | CODE_LINE)

static void put_stacks(const struct activity *activity, json_t *record, const struct layout *layout,
		       struct reading *reading)
{
	unsigned int detail = activity->keys.detail		      ? activity->keys.detail
			      : session_all_people(activity->session) ? CODE_SYMBOL
								      : FULL_DETAIL;
	struct called *called = called_of(&activity->session->host, reader_codes(activity->reader), detail,
					  sampling_unwinds(activity), layout, reading);

	called_put(called, record, sampling_most_entries(activity, called_count(called)));
	called_release(called);
}

static int refuse_without_stacks(const char *option, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "option --%s", option);
	because(refusal, "no stacks are asked for");
	return instead(refusal, "give -g as well");
}

static int plan_profile(struct plan *plan, const struct options *options, struct host *host,
			struct refusal *refusal)
{
	const char *events = options->events ? options->events : plan_default_sampled(plan, host);

	const char *why;
	bool tables;

	if (plan_unwind(options, host, &tables, &why, refusal) ||
	    plan_sampling(plan, events, options, host, refusal))
		return -1;
	return plan_check(plan, options, host, refusal);
}

static const struct sampling calls = {
	.command = "profile",
	.aggregation = "profile",
	.default_keys = "comm,stack",
	.ahead = "frames",
	.put = put_stacks,
	.places = true,
	.names = FULL_DETAIL,
	.code_keys = stack_code_keys,
};

static const struct sampling profile_by_keys = {
	.command = "profile",
	.aggregation = "profile",
	.default_keys = "comm,symbol",
	.code_keys = ip_code_keys,
};

static bool wants_stacks(const struct activity *activity)
{
	return activity->options->call_graph || list_has(activity->options->by, "stack") ||
	       session_keys(activity->session, activity->command);
}

static int choose(struct activity *activity, struct refusal *refusal)
{
	static const struct activity_ops ops = SAMPLING_OPS(plan_profile);
	struct options *options = activity->options;

	activity->ops = &ops;
	activity->details = &profile_by_keys;
	options->call_graph = wants_stacks(activity);
	if (!options->call_graph && (options->max_stack || options->unwind))
		return refuse_without_stacks(options->max_stack ? "max-stack" : "unwind", refusal);
	if (!options->call_graph)
		return 0;
	activity->details = &calls;
	if (options->by && !list_has(options->by, "stack"))
		options_join(options, &options->by, "stack");
	return 0;
}

static const struct activity_type type = {choose};

static const struct record_type profile_record = {
	.name = "profile",
	.list = "entries",
	.kept = {"event", "start_time", "duration_ns", "merged"},
	.code = {"code"},
};
REGISTER_RECORD(profile_record);

static const struct record_type frames_record = {
	.name = "frames",
	.list = "frames",
	.kept = {"event", "start_time", "duration_ns", "merged"},
	.code = {""},
};
REGISTER_RECORD(frames_record);

static const char *const keys[] = {"comm",  "symbol", "line", "module", "place",  "ip",
				   "stack", "pid",    "tid",  "cpu",	"cgroup", NULL};

static const struct option_row rows[] = {
	{0, "by", "KEYS", OPTION_TEXT, COMMON(by), .words = keys,
	 .help = "keys to aggregate by: any of pid,tid,comm,cpu,cgroup,stack, names of the code (symbol, "
		 "line, "
		 "module, place: module and offset) and its address, ip (default comm,symbol)"},
	{0},
};

static const struct command profile = {
	.name = "profile",
	.arguments = "[OPTIONS] [-- COMMAND …]",
	.help = "samples an event and aggregates the samples in the kernel",
	.options = {event_rows, sampling_rows, stack_rows, rows, target_rows, interval_rows, top_rows,
		    stream_rows, format_rows, screen_rows, plan_rows, table_rows, host_rows, help_rows},
	.activity = &type,
};
REGISTER_COMMAND(profile);
