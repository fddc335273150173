// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap branch: which branches are taken, by the last branch records of samples or by a trace. */
#include <stdio.h>
#include <string.h>

#include "activity/activity.h"
#include "activity/call_stacks.h"
#include "activity/sampling.h"
#include "base/array.h"
#include "base/list.h"
#include "branch/branches.h"
#include "branch/plan.h"
#include "branch/program.h"
#include "branch/tracing.h"
#include "option/command.h"
#include "record/type.h"
#include "shared.h"

/* The process of the run, if there is only one; else 0. */
static pid_t the_process(const struct activity *activity)
{
	const struct target *target = &activity->plan.target;

	return target->nr_pids == 1 ? target->pids[0] : activity_child(activity);
}

/* Keys that the BPF program has as `edge`, and how code is described for each. */
static const struct code_key branch_code_keys[] = {
	{"function", "edge", CODE_SYMBOL},
	{"callpair", "edge", CODE_SYMBOL},
	{"line", "edge", CODE_LINE},
	{"symbol", "edge", CODE_PLACE | CODE_SYMBOL},
	{0},
};

/* The kinds of edges. The first is used if no key names one; its places then have names, unless `edge` asks
 * for places only. */
static const struct branches_asked forms[] = {
	{.kind = "edge", .detail = CODE_PLACE},
	{.kind = "function", .detail = CODE_SYMBOL, .sources_only = true},
	{.kind = "callpair", .detail = CODE_SYMBOL},
	{.kind = "line", .detail = CODE_LINE},
};
#define FORMS ARRAY_SIZE(forms)

static bool mispredicted_first(const struct branch_options *own)
{
	return own->order && !strcmp(own->order, "mispredicted");
}

static struct branches_asked form_of(const struct activity *activity)
{
	const struct branch_options *own = activity->options->own;
	const struct chosen_keys *keys = &activity->keys;
	struct branches_asked form = forms[0];

	for (size_t i = 1; i < FORMS; i++)
		if (keys_asked(keys, forms[i].kind))
			form = forms[i];
	if (keys_asked(keys, "symbol") || !keys_asked(keys, form.kind))
		form.detail |= CODE_SYMBOL;
	form.depth = host_branches(&activity->session->host);
	form.by_mispredicted = mispredicted_first(own);
	form.frames = call_stacks_detail(activity);
	form.by_tables = activity->options->call_graph && sampling_unwinds(activity);
	return form;
}

static struct branches *new_branches(const struct activity *activity, struct codes *codes,
				     const struct layout *layout)
{
	struct branches_asked form = form_of(activity);

	return branches_new(&activity->session->host, codes, &form, layout);
}

static void put_branches(const struct activity *activity, json_t *record, struct branches *branches,
			 const struct reading *reading)
{
	const struct mapped_file *program =
		mappings_program(reader_mappings(activity->reader), the_process(activity));

	branches_add(branches, reading);
	if (program)
		json_object_set_new(record, "program", program_value(program));
	branches_put(branches, record, sampling_most_entries(activity, branches_count(branches)));
	branches_release(branches);
}

static void put_traced(const struct activity *activity, json_t *record, const struct layout *layout,
		       struct reading *reading)
{
	put_branches(activity, record, tracing_gathered(activity, layout), reading);
}

static void put_sampled(const struct activity *activity, json_t *record, const struct layout *layout,
			struct reading *reading)
{
	put_branches(activity, record, sampling_gathered(activity, layout), reading);
}

/* Why samples came without branches: what the LBR was to record did not happen before them. */
static const char *without_branches(const struct activity *activity, const json_t *record,
				    char text[SILENCE_SIZE])
{
	const char *filter = activity->options->filter;

	if (json_integer_value(json_object_get(json_object_get(record, "branches"), "delivered")))
		return NULL;
	if (!filter)
		return "the CPU's branch records were empty at each sample";
	snprintf(text, SILENCE_SIZE,
		 "none of the branches that --filter %s lets through was taken before a sample", filter);
	return text;
}

static void *begin_branches(const struct activity *activity, struct codes *codes, const struct layout *layout)
{
	return new_branches(activity, codes, layout);
}

static void from(void *branches, const struct stacks *stacks)
{
	branches_from(branches, stacks);
}

static bool try_entry(void *branches, const struct entry *entry)
{
	return branches_try(branches, entry);
}

static size_t count_branches(const void *branches)
{
	return branches_count(branches);
}

static void choose_some(void *branches, size_t most, bool *used)
{
	branches_choose(branches, most, used);
}

static void keep_codes(void *branches, const __u32 *numbers)
{
	branches_keep(branches, numbers);
}

static void release_branches(void *branches)
{
	branches_release(branches);
}

static const struct gathering gathering = {
	.begin = begin_branches,
	.from = from,
	.take = try_entry,
	.count = count_branches,
	.choose = choose_some,
	.keep = keep_codes,
	.release = release_branches,
};

/* Refuses two kinds, since both would count the same branches. */
static int refuse_two_forms(const struct chosen_keys *keys, struct refusal *refusal)
{
	const char *first = NULL;

	for (size_t i = 0; i < FORMS; i++) {
		if (!keys_asked(keys, forms[i].kind))
			continue;
		if (first) {
			refuse(refusal, STATUS_USAGE, "option --by '%s'", keys->by);
			because(refusal, "%s and %s are two ways to sum up the same branches", first,
				forms[i].kind);
			return instead(refusal, "take one of them");
		}
		first = forms[i].kind;
	}
	return 0;
}

/* Has only calls recorded: the LBR can be limited to them, so that all its entries are calls. */
static int only_calls(struct options *options, struct refusal *refusal)
{
	size_t length;

	if (!options->filter) {
		options->filter = "any_call";
		return 0;
	}
	for (const char *at = NULL; (at = list_next(options->filter, at, &length));) {
		static const char *const kinds[] = {"any_call", "ind_call", "u", "k"};
		size_t i = 0;

		while (i < 4 && (strlen(kinds[i]) != length || strncmp(at, kinds[i], length)))
			i++;
		if (i < 4)
			continue;
		refuse(refusal, STATUS_USAGE, "option --by callpair with --filter '%s'", options->filter);
		because(refusal, "pairs of caller and callee are made from calls");
		return instead(refusal, "leave the filter out, or take any_call or ind_call");
	}
	return 0;
}

/* --- the command ------------------------------------------------------------------------------ */

static int refuse_beside_autofdo(const char *asked, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "%s with --format autofdo", asked);
	because(refusal, "an autofdo profile is of one program, whole, and for the whole run");
	return instead(refusal, "leave it out; json takes it");
}

static int choose(struct activity *activity, struct refusal *refusal)
{
	static const struct activity_ops ops = SAMPLING_OPS(plan_branch);
	static const struct sampling sampled = {
		.command = "branch",
		.aggregation = "branch",
		.where_fields = WHERE_OF_ALL,
		.reads_stacks = true,
		.put = put_sampled,
		.empty = without_branches,
		.gathering = &gathering,
		.places = true,
		.names = CODE_SYMBOL,
		.code_keys = branch_code_keys,
	};
	static const struct sampling called = {
		.command = "branch",
		.aggregation = "branch_stacks",
		.where_fields = WHERE_OF_ALL,
		.reads_stacks = true,
		.put = put_sampled,
		.empty = without_branches,
		.gathering = &gathering,
		.ahead = "frames",
		.places = true,
		.names = FRAME_DETAIL,
		.code_keys = branch_code_keys,
	};
	static const struct tracing traced = {put_traced, branch_code_keys, &gathering};
	struct options *options = activity->options;
	const struct branch_options *own = options->own;
	const char *keys = session_keys(activity->session, activity->name, activity->command, "range");
	struct chosen_keys chosen;

	activity->ops = own->trace ? &tracing_ops : &ops;
	if (!keys && !options->by)
		options->by = "symbol";
	if (call_stacks_choose(activity, refusal))
		return -1;
	activity->details = own->trace ? (const void *)&traced : options->call_graph ? &called : &sampled;
	if (keys && (mispredicted_first(own) || options->call_graph))
		return refuse_beside_autofdo(options->call_graph ? "stacks (-g)" : "option --sort", refusal);
	if (keys) {
		options->by = keys;
		return 0;
	}
	keys_choose(&chosen, options->by, branch_code_keys);
	if (refuse_two_forms(&chosen, refusal))
		return -1;
	return keys_asked(&chosen, "callpair") ? only_calls(options, refusal) : 0;
}

static const struct activity_type type = {choose, .records = "branch,frames,annotation,sample,traced,lost"};

static const struct record_type branch_record = {
	.name = "branch",
	.list = "entries",
	.kept = {"event", "nth", "start_time", "duration_ns", "merged"},
	.code = {"from", "to"},
};
REGISTER_RECORD(branch_record);

static const char *const orders[] = {"count", "mispredicted", NULL};

static const char *const keys[] = {"symbol", "edge", "function", "callpair", "line", "range",
				   "pid",    "comm", "cgroup",	 "stack",    NULL};

static const struct option_row rows[] = {
	{0, "trace", NULL, OPTION_FLAG, OWN(struct branch_options, trace),
	 .help = "record every branch of the threads with the branch trace store (BTS), instead of samples"},
	{0, "stream", NULL, OPTION_FLAG, COMMON(stream),
	 .help = "with --trace: write each branch as a record as well, in its thread's order"},
	{0, "by", "KEYS", OPTION_TEXT, COMMON(by), .words = keys, .again = AGAIN_JOINS,
	 .help = "symbol (branches, with the functions that they are in; the default), edge (branches by "
		 "their place alone), or what they add up to: function, callpair (caller and callee), line; "
		 "range (the code between them); and any of pid,comm,cgroup,stack"},
	{0, "sort", "ORDER", OPTION_WORD, OWN(struct branch_options, order), .words = orders,
	 .help = "sort by count (the default) or mispredicted"},
	{0, "filter", "BRANCHES", OPTION_TEXT, COMMON(filter), .again = AGAIN_JOINS,
	 .help = "which branches the LBR records: any, any_call, any_ret, ind_call, ind_jmp, cond; sides u, "
		 "k"},
	{0},
};

static const struct command branch = {
	.name = "branch",
	.arguments = "[OPTIONS] [-- COMMAND …]",
	.help = "shows which branches are taken and mispredicted, and how often",
	.options = {event_rows, sampling_rows, where_rows, stack_rows, rows, target_rows, interval_rows,
		    top_rows, stream_rows, format_rows, screen_rows, plan_rows, table_rows, host_rows,
		    machine_rows, help_rows},
	.own_size = sizeof(struct branch_options),
	.activity = &type,
};
REGISTER_COMMAND(branch);
