// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap profile: samples of any event, aggregated by code, by process or thread, or by call stack. */
#include "activity/activity.h"
#include "activity/call_stacks.h"
#include "activity/sampling.h"
#include "annotate/annotation.h"
#include "option/command.h"
#include "plan/unwind.h"
#include "record/type.h"

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
	.where_fields = WHERE_OF_ALL ",addr",
	.default_keys = "comm,stack",
	.ahead = "frames",
	.put = sampling_put_stacks,
	.gathering = &gathering_of_stacks,
	.places = true,
	.names = FRAME_DETAIL,
	.code_keys = stack_code_keys,
};

static const struct sampling profile_by_keys = {
	.command = "profile",
	.aggregation = "profile",
	.where_fields = WHERE_OF_ALL ",addr",
	.default_keys = "comm,symbol",
	.annotated_keys = ANNOTATED_KEYS,
	.code_keys = ip_code_keys,
};

static int choose(struct activity *activity, struct refusal *refusal)
{
	static const struct activity_ops ops = SAMPLING_OPS(plan_profile);

	activity->ops = &ops;
	if (call_stacks_choose(activity, refusal))
		return -1;
	activity->details = activity->options->call_graph ? &calls : &profile_by_keys;
	return 0;
}

static const struct activity_type type = {choose, .records = "profile,frames,annotation"};

static const struct record_type profile_record = {
	.name = "profile",
	.list = "entries",
	.kept = {"event", "nth", "start_time", "duration_ns", "merged"},
	.code = {"code"},
};
REGISTER_RECORD(profile_record);

static const struct record_type frames_record = {
	.name = "frames",
	.list = "frames",
	.kept = {"event", "nth", "start_time", "duration_ns", "merged"},
	.code = {""},
};
REGISTER_RECORD(frames_record);

static const struct record_type annotation_record = {
	.name = "annotation",
	.list = "instructions",
	.kept = {"event", "nth", "start_time", "duration_ns", "function"},
};
REGISTER_RECORD(annotation_record);

static const char *const keys[] = {"comm",  "symbol", "line", "module", "place",  "ip",
				   "stack", "pid",    "tid",  "cpu",	"cgroup", NULL};

static const struct option_row rows[] = {
	{0, "by", "KEYS", OPTION_TEXT, COMMON(by), .words = keys, .again = AGAIN_JOINS,
	 .help = "keys to aggregate by: any of pid,tid,comm,cpu,cgroup,stack, names of the code (symbol, "
		 "line, module, place: module and offset) and its address, ip (default comm,symbol)"},
	{0, "annotate", "FUNCTION", OPTION_TEXT, COMMON(annotate), .again = AGAIN_REFUSED,
	 .help = "show the code of FUNCTION: source lines and instructions, each with its samples"},
	{0},
};

static const struct command profile = {
	.name = "profile",
	.arguments = "[OPTIONS] [-- COMMAND …]",
	.help = "samples an event and aggregates the samples in the kernel",
	.options = {event_rows, sampling_rows, where_rows, stack_rows, rows, target_rows, interval_rows,
		    top_rows, stream_rows, format_rows, screen_rows, plan_rows, table_rows, host_rows,
		    machine_rows, help_rows},
	.activity = &type,
};
REGISTER_COMMAND(profile);
