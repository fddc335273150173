// SPDX-License-Identifier: GPL-2.0-only
/* Divides the memory limit of a session among its parts. */
#include "run/parts.h"

#include <malloc.h>

#include "naming/naming.h"
#include "unwind/unwinding.h"

/* Estimates by the resident set of a few runs: code, libraries and data about processes; per CPU, a ring for
 * the kernel's notes. */
#define PROGRAM_BYTES (7UL << 20)
#define CPU_BYTES     (300UL << 10)

/* The least for symbols of the kernel and of some files, and what reading them takes in addition, including
 * the worker process. */
#define NAMES_LEAST   (10UL << 20)
#define NAMES_READING ((4UL << 20) + WORKER_BYTES)
#define QUEUE_LEAST   (64UL << 10)

/* For a run of everything without a limit, and one in a small cgroup: with what else such a run holds, 64 MiB
 * on two CPUs. */
#define NAMES_OF_EVERYTHING	(10UL << 20)
#define UNWINDING_OF_EVERYTHING (8UL << 20)
#define CGROUP_SMALL		(512UL << 20) /* what other runs may take: NAMING_MEMORY and as much for the rest */

/* Adds a part's size. A size that was asked for explicitly is not reduced. */
static void want(struct limits *limits, enum memory_part part, size_t asked, size_t least, size_t usual)
{
	limits_want(limits, part, asked ? asked : least, asked ? asked : usual);
}

int sum_memory(struct run *run, struct refusal *refusal)
{
	struct session *session = &run->session;
	struct limits *limits = &session->limits;
	bool named = false; /* names of code are needed */
	size_t program = PROGRAM_BYTES + cpus_count(&session->host.possible) * CPU_BYTES;

	for (size_t i = 0; i < MEMORY_PARTS; i++)
		limits->parts[i].least = limits->parts[i].most = limits->parts[i].spare = 0;
	limits_want(limits, MEMORY_PROGRAM, program, program);
	for (size_t i = 0; i < run->request->nr_outputs; i++) {
		size_t asked = run->request->outputs[i].queue_bytes;

		want(limits, MEMORY_QUEUES, asked == QUEUE_BYTES ? 0 : asked, QUEUE_LEAST, QUEUE_BYTES);
	}
	for (size_t i = 0; i < run->nr; i++) {
		const struct activity *activity = &run->members[i]->activity;

		if (!activity->state || !activity->ops || !activity->ops->want)
			continue;
		activity->ops->want(activity, limits);
		named = named || activity->keys.detail || activity->options->call_graph;
	}
	if (named) {
		want(limits, MEMORY_NAMES, run->request->names_bytes, NAMES_LEAST, NAMING_MEMORY);
		limits_want(limits, MEMORY_NAMES, NAMES_READING, NAMES_READING);
	}
	return limits_check(limits, refusal);
}

void share_queue(const struct run *run, struct sink *sink)
{
	const struct limits *limits = &run->session.limits;
	const struct memory_want *queues = &limits->parts[MEMORY_QUEUES];

	if (limits->memory && queues->most && sink->most == QUEUE_BYTES)
		sink->most = (double)queues->share / queues->most * QUEUE_BYTES;
}

/* Whether a run without intervals measures whatever runs somewhere: it may see any number of files, and keeps
 * what it has read of them until its end. With intervals, what is not used any more is forgotten. */
static bool is_of_everything(const struct run *run)
{
	const struct activity *activity = run->nr == 1 ? &run->members[0]->activity : NULL;

	return activity && activity->options && !activity->options->interval_ms &&
	       !run->request->names_bytes && activity->plan.target.cpus_given;
}

/* Whether the cgroup's limit could end the run if names took what they may take otherwise. */
static bool is_in_small_cgroup(const struct run *run)
{
	__u64 limit = run->session.host.memory_limit;

	return limit && limit < CGROUP_SMALL && !run->request->names_bytes;
}

int share_memory(struct run *run, struct refusal *refusal)
{
	struct session *session = &run->session;
	struct limits *limits = &session->limits;
	const struct memory_want *names = &limits->parts[MEMORY_NAMES],
				 *unwinding = &limits->parts[MEMORY_UNWINDING];

	if (sum_memory(run, refusal))
		return -1;
	if (!limits->memory) {
		if (is_of_everything(run) || is_in_small_cgroup(run))
			names_limit(session->names,
				    &(struct names_limits){.memory = NAMES_OF_EVERYTHING,
							   .unwinding = UNWINDING_OF_EVERYTHING,
							   .few_lines = true});
		return 0;
	}
	limits_share(limits);
	names_limit(session->names,
		    &(struct names_limits){
			    names->share ? names->share - NAMES_READING : NAMES_LEAST,
			    unwinding->share ? unwinding->share - (UNWIND_MEMORY_LEAST - UNWIND_BLOCK) : 0,
			    .sparing = true,
		    });
	for (size_t i = 0; i < session->nr_streams; i++)
		share_queue(run, &session->streams[i].sink);
	/* Use one heap for all threads, and give unused memory back. */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 64 << 10);
	mallopt(M_TRIM_THRESHOLD, 128 << 10);
	return 0;
}
