// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap branch: which branches are taken, from the last branch record that comes with each sample, or
 * from a trace. */
#include <string.h>

#include "command/command.h"
#include "record/branches.h"
#include "record/module.h"
#include "run/sampling.h"
#include "run/tracing.h"

/* A command's modules must be known before it ends: then they are gone. */
static void branch_look(struct run *run)
{
	const struct target *target = &run->plan.target;

	if (run->child.pid)
		module_look(run->child.pid);
	for (size_t i = 0; i < target->nr_pids; i++)
		module_look(target->pids[i]);
}

/* The one process that the run is about; 0 if there are others. */
static pid_t the_process(const struct run *run)
{
	const struct target *target = &run->plan.target;

	return run->child.pid ? run->child.pid : target->nr_pids == 1 ? target->pids[0] : 0;
}

static void branch_put(const struct run *run, json_t *record, const struct layout *layout,
		       struct reading *reading)
{
	struct branches *branches = branches_of(&run->host, layout, reading);
	const struct program *program = module_program(the_process(run));

	if (program)
		json_object_set_new(record, "program", program_value(program));
	branches_put(branches, record, sampling_most_entries(run, branches_count(branches)));
	branches_release(branches);
}

/* A compiler's profile is of one program, in a form of its own. */
static int refuse_beside_autofdo(const struct options *options, struct refusal *refusal)
{
	bool several = options->pids && strchr(options->pids, ',');
	const char *other = options->by		   ? "--by"
			    : options->interval_ms ? "--interval"
			    : options->control	   ? "--control"
			    : options->top	   ? "--top"
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
		.look = branch_look,
		.plan = plan_branch,
	};

	return options->trace ? tracing_run(branch_put, branch_look, options, refusal)
			      : sampling_run(&branch, options, refusal);
}

int command_branch(const struct options *options, struct refusal *refusal)
{
	struct options chosen = *options;

	if (options->format != FORMAT_AUTOFDO)
		return run_branch(options, refusal);
	if (refuse_beside_autofdo(options, refusal))
		return refusal->status;
	chosen.by = "edge,range";
	return run_branch(&chosen, refusal);
}
