// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap branch: which branches are taken, from the last branch record that comes with each sample, or
 * from a trace. */
#include <string.h>

#include "command/command.h"
#include "record/branches.h"
#include "record/program.h"
#include "run/addresses.h"
#include "run/sampling.h"
#include "run/tracing.h"

/* The one process that the run is about; 0 if there are others. */
static pid_t the_process(const struct run *run)
{
	const struct target *target = &run->plan.target;

	return run->child.pid ? run->child.pid : target->nr_pids == 1 ? target->pids[0] : 0;
}

/* What the kernel tells apart as edges, and what becomes of them. */
static const struct code_key branch_code_keys[] = {
	{"function", "edge", CODE_SYMBOL},
	{"callpair", "edge", CODE_SYMBOL},
	{"line", "edge", CODE_LINE},
	{"symbol", "edge", CODE_PLACE | CODE_SYMBOL},
	{0},
};

/* The forms of edges; the first is that of keys which name none. */
static const struct branches_asked forms[] = {
	{.kind = "edge", .detail = CODE_PLACE},
	{.kind = "function", .detail = CODE_SYMBOL, .sources_only = true},
	{.kind = "callpair", .detail = CODE_SYMBOL},
	{.kind = "line", .detail = CODE_LINE},
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

static struct branches_asked form_of(const struct run *run)
{
	const struct chosen_keys *keys = &run->keys;
	struct branches_asked form = forms[0];

	for (size_t i = 1; i < FORMS; i++)
		if (keys_asked(keys, forms[i].kind))
			form = forms[i];
	if (!form.sources_only && keys_asked(keys, "symbol"))
		form.detail |= CODE_SYMBOL;
	/* People read names. */
	else if (run->stream.format == FORMAT_TABLE && form.detail == CODE_PLACE)
		form.shown_detail = CODE_SYMBOL;
	form.by_mispredicted = run->options->by_mispredicted;
	return form;
}

static void branch_put(const struct run *run, json_t *record, const struct layout *layout,
		       struct reading *reading)
{
	struct addresses *addresses = run->addresses;
	struct branches_asked form = form_of(run);
	struct branches *branches =
		branches_of(&run->host, addresses_codes(addresses), &form, layout, reading);
	const struct mapped_file *program =
		mappings_program(addresses_mappings(addresses), the_process(run));

	if (program)
		json_object_set_new(record, "program", program_value(program));
	branches_put(branches, record, sampling_most_entries(run, branches_count(branches)));
	branches_release(branches);
}

/* Each form counts the same branches. */
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

/* Calls alone are what the LBR can be told to record: then all sixteen are. */
static int only_calls(struct options *options, struct refusal *refusal)
{
	if (!options->filter) {
		options->filter = "any_call";
		return 0;
	}
	for (const char *at = options->filter;; at++) {
		static const char *const kinds[] = {"any_call", "ind_call", "u", "k"};
		size_t length = strcspn(at, ","), i = 0;

		while (i < 4 && (strlen(kinds[i]) != length || strncmp(at, kinds[i], length)))
			i++;
		if (i == 4) {
			refuse(refusal, STATUS_USAGE, "option --by callpair with --filter '%s'",
			       options->filter);
			because(refusal, "pairs of caller and callee are made from calls");
			return instead(refusal, "leave the filter out, or take any_call or ind_call");
		}
		at += length;
		if (!*at)
			return 0;
	}
}

/* A compiler's profile is of one program, in a form of its own. */
static int refuse_beside_autofdo(const struct options *options, struct refusal *refusal)
{
	bool several = options->pids && strchr(options->pids, ',');
	const char *other = options->by		   ? "--by"
			    : options->interval_ms ? "--interval"
			    : options->control	   ? "--control"
			    : options->top	   ? "--top"
			    : options->by_mispredicted ? "--sort"
			    : options->all_cpus	   ? "--all-cpus"
			    : options->cpus	   ? "--cpu"
			    : several		   ? "--pid of several processes"
						   : NULL;

	if (!other)
		return 0;
	refuse(refusal, STATUS_USAGE, "option %s with --format autofdo", other);
	because(refusal, "an autofdo profile is of one program, whole, and for the whole run");
	return instead(refusal, "leave it out; json takes it");
}

static int run_branch(const struct options *options, struct refusal *refusal)
{
	static const struct sampling branch = {
		.command = "branch",
		.aggregation = "branch",
		.default_keys = "edge",
		.reads_stacks = true,
		.put = branch_put,
		.places = true,
		.code_keys = branch_code_keys,
		.plan = plan_branch,
	};

	return options->trace ? tracing_run(branch_put, branch_code_keys, options, refusal)
			      : sampling_run(&branch, options, refusal);
}

int command_branch(const struct options *options, struct refusal *refusal)
{
	struct options chosen = *options;
	struct chosen_keys keys;

	if (options->format != FORMAT_AUTOFDO) {
		keys_choose(&keys, options->by ? options->by : "edge", branch_code_keys);
		if (refuse_two_forms(&keys, refusal) ||
		    (keys_asked(&keys, "callpair") && only_calls(&chosen, refusal)))
			return refusal->status;
		return run_branch(&chosen, refusal);
	}
	if (refuse_beside_autofdo(options, refusal))
		return refusal->status;
	chosen.by = "edge,range";
	return run_branch(&chosen, refusal);
}
