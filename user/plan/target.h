/* SPDX-License-Identifier: GPL-2.0-only */
/* The target: what is measured. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cpus.h"
#include "base/refusal.h"
#include "host/host.h"
#include "option/options.h"

struct target {
	/* NULL-terminated, from argv; NULL if there is none. Beside processes, threads, CPUs or cgroups it
	 * only says for how long they are measured. */
	char **command;
	pid_t *pids;
	size_t nr_pids;
	pid_t *tids; /* individual threads, without the other threads of their processes */
	size_t nr_tids;
	bool cpus_given;  /* whether everything on these CPUs, or everything in the cgroups, is measured */
	bool all_cpus;	  /* these CPUs, and others that come online */
	struct cpus cpus; /* online when the run is planned */
	struct cgroup {
		char *name; /* the user's spelling; if found by a pattern, its path below the mount */
		char *path; /* its folder */
		bool found; /* found by a pattern, so part of the target only while it exists */
		/* Found by a pattern, but no longer there. `gone`: its counts are still to be reported.
		 * `vacant`: they are, and its place can be used for another, unless places are kept. */
		bool gone, vacant;
		bool past;		 /* found in an earlier execution, and not in this one so far */
		bool of_any;		 /* stands for counts that may be any cgroup's */
		unsigned int generation; /* number of cgroups that had this place before */
	} * cgroups;
	size_t nr_cgroups;
	struct cgroup_pattern {
		char *text;	/* "/system.slice/" "*.service"; for a container, the beginning of its id */
		bool container; /* matches a container's id; its path does not matter */
		bool fitted;	/* some cgroup has, in this run */
	} * patterns;
	size_t nr_patterns;
	/* Each cgroup that patterns find is told apart until the end of the run, whose means and expectations
	 * are of single cgroups. */
	bool keeps_places;
	bool by_switches; /* cgroups are counted without events of their own, if the kernel supports it */
	/* Cgroups are told apart by what samples say. Events are opened once: in a cgroup that contains all
	 * that fit the patterns, by its folder, or for all that runs on the CPUs (NULL). */
	bool by_samples;
	char *folder;
	bool begins_off;  /* --delay: counting is enabled later */
	unsigned int per; /* the keys of counts: bits of enum per, 0 for none */
};

/* The pattern of all cgroups. */
#define CGROUPS_ALL "/**"

/* Whether the target consists of cgroups, even if there are none right now. */
static inline bool target_in_cgroups(const struct target *target)
{
	return target->nr_cgroups || target->nr_patterns;
}

/* Whether the target consists of processes or threads that exist already. */
static inline bool target_of_ids(const struct target *target)
{
	return target->nr_pids || target->nr_tids;
}

/* Whether the command is what is measured. */
static inline bool target_is_command(const struct target *target)
{
	return target->command && !target->cpus_given && !target_of_ids(target);
}

/* Makes patterns of the cgroups that are named beside patterns, so that all are measured in the same way from
 * their first instruction. Returns false if there are no patterns, or if the root is among the cgroups. */
bool target_by_patterns(struct target *target, const struct host *host);

/* Has cgroups told apart by samples, if patterns name them. */
void target_tell_by_samples(struct target *target, const struct host *host);

/* Adds a cgroup that a pattern has found, by its path below the mount, in a vacant place or at the end. If
 * places are kept, only the one that this path had in an earlier execution counts as vacant.
 * `of_any`: the path is the name of counts that may be any cgroup's. These have a place that no cgroup had,
 * because places of cgroups are summed up together. Returns its index. */
size_t target_take_in(struct target *target, const struct host *host, const char *path, bool of_any);

/* Whether a cgroup, by its path below the mount, is one of those named; `inside`: or inside of one. */
bool target_has_cgroup(const struct target *target, const struct host *host, const char *path, bool inside);

/* The keys of --per. */
enum per {
	PER_CPU = 1 << 0,
	PER_CORE = 1 << 1,
	PER_SOCKET = 1 << 2,
	PER_NODE = 1 << 3,
	PER_THREAD = 1 << 4,
	PER_CGROUP = 1 << 5,
};

/* Plans the target that the options name on this host. The target owns its lists up to target_release(),
 * which may also be called on a zeroed one and after a refusal. Returns 0, or -1 with the refusal. */
int target_plan(struct target *target, const struct options *options, const struct host *host,
		struct refusal *refusal);
void target_release(struct target *target);

/* Whether the target includes one of these CPUs, the cpumask of an event's PMU. */
bool target_counts(const struct target *target, const struct cpus *cpus);
