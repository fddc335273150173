// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap stream: every sample of any events as a record. */
#include <stdio.h>
#include <string.h>

#include "activity/activity.h"
#include "activity/call_stacks.h"
#include "activity/sampling.h"
#include "activity/streaming.h"
#include "base/alternatives.h"
#include "base/array.h"
#include "base/list.h"
#include "branch/plan.h"
#include "event/branch_filter.h"
#include "mem/plan.h"
#include "option/command.h"
#include "plan/plan.h"
#include "plan/where.h"
#include "session/session.h"

#define DEFAULT_FIELDS "comm,pid,tid,cpu,ip,symbol,period"

static const char *const fields[] = {"time",   "ip",	    "symbol",  "line",	 "module",    "place",
				     "pid",    "tid",	    "comm",    "cpu",	 "cgroup",    "container",
				     "period", "addr",	    "latency", "source", "cacheline", "offset",
				     "page",   "phys_page", "node",    "tlb",	 "lock",      "phys",
				     "stack",  "branches",  "regs",    NULL};

/* What only mem's program reads of a sample. */
static const char *const of_mem[] = {"addr",   "latency", "source", "cacheline", "page", "phys_page",
				     "offset", "node",	  "tlb",    "lock",	 "phys"};

static bool wants_data(const struct options *options)
{
	for (size_t i = 0; i < ARRAY_SIZE(of_mem); i++)
		if (list_has(options->by, of_mem[i]))
			return true;
	return where_mentions(options->where, "latency") || where_mentions(options->where, "source");
}

static int ask_for_branches(struct event *event, const struct host *host, struct refusal *refusal)
{
	if (event_stops_throttled(event)) /* as only those of counters do */
		return branch_filter_set(event, "any", host->events, refusal);
	refuse(refusal, STATUS_USAGE, "option --fields branches with the event '%s'", event->name);
	because(refusal, "the CPU's branch records come with samples of its own counters");
	return instead(refusal, "take one of those: branches, cycles");
}

static int plan_stream(struct plan *plan, const struct options *options, struct host *host,
		       struct refusal *refusal)
{
	const char *events = options->events ? options->events : plan_default_sampled(plan, host);

	bool physical = list_has(options->by, "phys_page") || list_has(options->by, "phys");

	if (physical && check_physical("--fields", options, host, refusal))
		return -1;
	if (list_has(options->by, "branches") && branch_check_record(host, refusal))
		return -1;
	if (plan_sampling(plan, events, options, host, refusal))
		return -1;
	for (size_t i = 0; wants_data(options) && i < plan->events.nr; i++)
		if (!plan->events.list[i].companion)
			ask_for_load(&plan->events.list[i], physical);
	for (size_t i = 0; list_has(options->by, "branches") && i < plan->events.nr; i++)
		if (!plan->events.list[i].companion && ask_for_branches(&plan->events.list[i], host, refusal))
			return -1;
	return plan_check(plan, options, host, refusal);
}

/* The samples are the record. */
static void put_nothing(const struct activity *activity, json_t *record, const struct layout *layout,
			struct reading *reading)
{
}

static int check_field(const char *list, const char *field, size_t length, struct refusal *refusal)
{
	struct alternatives alternatives;

	for (size_t i = 0; fields[i]; i++)
		if (strlen(fields[i]) == length && !strncmp(fields[i], field, length))
			return 0;
	alternatives_begin(&alternatives, field, length);
	alternatives_offer_all(&alternatives, fields);
	refuse(refusal, STATUS_USAGE, "option --fields '%s'", list);
	because(refusal, "there is no field '%.*s'", (int)length, field);
	return alternatives_end(&alternatives, refusal, "fields: %s", alternatives.all);
}

static int check_fields(const char *list, struct refusal *refusal)
{
	size_t length;

	for (const char *at = NULL; (at = list_next(list, at, &length));)
		if (check_field(list, at, length, refusal))
			return -1;
	return 0;
}

static int choose(struct activity *activity, struct refusal *refusal)
{
	struct options *options = activity->options;
	static const struct activity_ops ops = SAMPLING_OPS(plan_stream);
	static const struct sampling samples = {
		.command = "stream",
		.aggregation = "profile",
		.where_fields = WHERE_OF_ALL ",addr",
		.keys_option = "--fields",
		.stream_keys = DEFAULT_FIELDS,
		.code_keys = stream_fields,
		.put = put_nothing,
	};
	static const struct sampling with_data = {
		.command = "stream",
		.aggregation = "mem",
		.where_fields = WHERE_OF_DATA,
		.keys_option = "--fields",
		.stream_keys = DEFAULT_FIELDS,
		.code_keys = stream_fields,
		.knows_throttling = true,
		.put = put_nothing,
	};

	activity->ops = &ops;
	if (check_fields(options->by, refusal))
		return -1;
	if ((options->call_graph ||
	     session_keys(activity->session, activity->name, activity->command, "stack")) &&
	    !options->by)
		options->by = DEFAULT_FIELDS ",stack";
	if (call_stacks_choose(activity, refusal))
		return -1;
	activity->details = wants_data(options) ? &with_data : &samples;
	return 0;
}

static const struct activity_type type = {choose, .records = "sample,stream,lost", .streams = true};

static const struct option_row rows[] = {
	{0, "fields", "FIELDS", OPTION_TEXT, COMMON(by), .words = fields, .again = AGAIN_JOINS,
	 .help = "what each sample has beside its event and time: any of "
		 "pid,tid,comm,cpu,cgroup,container,period, "
		 "the code's names (symbol, line, module, place) and its address, ip; of loads and page "
		 "faults "
		 "addr,phys,latency,source,cacheline,offset,page,phys_page,node,tlb,lock; and stack, "
		 "branches "
		 "(the last before the sample), regs (default " DEFAULT_FIELDS ")"},
	{0, "adaptive", NULL, OPTION_FLAG, COMMON(adaptive),
	 .help = "while samples come faster than they can be written, keep one of every n and say n"},
	{0},
};

static const struct command stream = {
	.name = "stream",
	.arguments = "[OPTIONS] [-- COMMAND …]",
	.help = "writes each sample of any events as a record, in the order of time",
	.options = {event_rows, sampling_rows, where_rows, stack_rows, rows, target_rows, interval_rows,
		    stream_rows, format_rows, screen_rows, plan_rows, table_rows, host_rows, machine_rows,
		    help_rows},
	.activity = &type,
};
REGISTER_COMMAND(stream);
