// SPDX-License-Identifier: GPL-2.0-only
#include "collection/counters.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <perf/core.h>
#include <perf/cpumap.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <perf/threadmap.h>

#include "collection/libperf_fd.h"
#include "plan/denial.h"

struct counters {
	const struct plan *plan;
	struct perf_evsel **evsels; /* one an event; the lists own them */
	struct perf_evlist **lists; /* one a group, or event outside of groups */
	size_t nr_lists;
	struct perf_cpu_map *cpus; /* NULL: any CPU */
	struct perf_thread_map *threads;
	int nr_cpus, nr_threads;
	size_t unfollowed;
};

/* --- threads of the target -------------------------------------------------------------------- */

struct tids {
	pid_t *list;
	size_t nr;
};

static int tids_of(pid_t pid, struct tids *tids)
{
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return -ESRCH;
	while ((entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		tids->list = realloc(tids->list, (tids->nr + 1) * sizeof(pid_t));
		tids->list[tids->nr++] = atoi(entry->d_name);
	}
	closedir(dir);
	return 0;
}

static int target_tids(const struct target *target, struct tids *tids, struct refusal *refusal)
{
	tids->nr = 0;
	for (size_t i = 0; i < target->nr_pids; i++)
		if (tids_of(target->pids[i], tids)) {
			refuse(refusal, STATUS_REFUSED, "process %d", target->pids[i]);
			refusal->error = ESRCH;
			because(refusal, "there is no such process");
			return instead(refusal, "it may have ended; see ps -e");
		}
	return 0;
}

/* How many of `now` are not in `before`. */
static size_t tids_new(const struct tids *before, const struct tids *now)
{
	size_t count = 0;

	for (size_t i = 0; i < now->nr; i++) {
		size_t j = 0;

		while (j < before->nr && before->list[j] != now->list[i])
			j++;
		count += j == before->nr;
	}
	return count;
}

/* --- opening ---------------------------------------------------------------------------------- */

static int leaders(const struct events *events)
{
	int count = 0;

	for (size_t i = 0; i < events->nr; i++)
		count += event_leads(events, i);
	return count;
}

/* Makes the evsels, in one list a group: a list's first event is its leader. */
static void build(struct counters *counters)
{
	const struct events *events = &counters->plan->events;

	counters->evsels = calloc(events->nr, sizeof(*counters->evsels));
	counters->lists = calloc(leaders(events), sizeof(*counters->lists));
	for (size_t i = 0; i < events->nr; i++) {
		struct event *event = &events->list[i];
		struct perf_evlist *list;

		if (event_leads(events, i))
			counters->lists[counters->nr_lists++] = perf_evlist__new();
		list = counters->lists[counters->nr_lists - 1];
		counters->evsels[i] = perf_evsel__new(&event->attr);
		perf_evlist__add(list, counters->evsels[i]);
		perf_evlist__set_leader(list);
	}
}

static void drop(struct counters *counters)
{
	for (size_t i = 0; counters->evsels && i < counters->plan->events.nr; i++)
		perf_evsel__close(counters->evsels[i]);
	for (size_t i = 0; i < counters->nr_lists; i++)
		perf_evlist__delete(counters->lists[i]);
	free(counters->evsels);
	free(counters->lists);
	perf_thread_map__put(counters->threads);
	counters->evsels = NULL;
	counters->lists = NULL;
	counters->threads = NULL;
	counters->nr_lists = 0;
}

/* One descriptor is needed an event, CPU and thread: the soft limit is for programs that know
 * nothing of this, the hard one is meant. */
static void raise_descriptor_limit(rlim_t kept)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max > kept ? limit.rlim_max - kept : 0;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Of the descriptors that may be open these are kept for the run itself (its timers, the processes it
 * waits for, what it reads): if events took them all, it could not even be told to end. */
#define KEPT_DESCRIPTORS 16

void counters_free_descriptors(void)
{
	raise_descriptor_limit(0);
}

/* Opens all events on these threads. Returns 0 or -errno, and the event that failed. */
static int open_on(struct counters *counters, struct tids *tids, size_t *failed)
{
	counters->threads = tids->nr ? perf_thread_map__new_array(tids->nr, tids->list)
				     : perf_thread_map__new_dummy();
	counters->nr_threads = perf_thread_map__nr(counters->threads);
	build(counters);
	for (*failed = 0; *failed < counters->plan->events.nr; ++*failed) {
		int err = perf_evsel__open(counters->evsels[*failed], counters->cpus,
					   counters->threads);

		if (err)
			return err;
	}
	return 0;
}

#define ATTEMPTS 5

/*
 * A thread that appears between the listing and the opening is followed if the one that made it
 * was already open, and not if it was not yet; nothing tells which. Where the threads were the
 * same before and after, none can have been missed; otherwise it is tried again.
 */
static int open_on_pids(struct counters *counters, struct tids *tids, size_t *failed,
			struct refusal *refusal)
{
	const struct target *target = &counters->plan->target;
	struct tids after = {0};
	int err = 0;

	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		drop(counters);
		err = target_tids(target, tids, refusal) ? 1 : open_on(counters, tids, failed);
		if (err == -ESRCH)
			continue; /* one of the threads has ended */
		if (err)
			break;
		err = target_tids(target, &after, refusal) ? 1 : 0;
		if (err)
			break;
		counters->unfollowed = tids_new(tids, &after);
		if (!counters->unfollowed)
			break;
	}
	free(after.list);
	return err;
}

int counters_open(struct counters **result, const struct plan *plan, pid_t child,
		  struct host *host, struct refusal *refusal)
{
	struct counters *counters = calloc(1, sizeof(*counters));
	struct tids tids = {0};
	char cpus[4096];
	size_t failed = 0;
	int err;

	raise_descriptor_limit(KEPT_DESCRIPTORS + plan->target.nr_pids);
	counters->plan = plan;
	counters->nr_cpus = 1;
	if (plan->target.cpus_given) {
		cpus_print(&plan->target.cpus, cpus, sizeof(cpus));
		counters->cpus = perf_cpu_map__new(cpus);
		counters->nr_cpus = cpus_count(&plan->target.cpus);
	}
	if (plan->target.nr_pids) {
		err = open_on_pids(counters, &tids, &failed, refusal);
	} else {
		if (child && !plan->target.cpus_given)
			tids = (struct tids){memcpy(malloc(sizeof(child)), &child, sizeof(child)), 1};
		err = open_on(counters, &tids, &failed);
	}
	free(tids.list);
	if (err) {
		if (err < 0)
			open_denied(refusal, host, plan, &plan->events.list[failed], -err,
				    (size_t)counters->nr_cpus * counters->nr_threads);
		counters_close(counters);
		return -1;
	}
	*result = counters;
	return 0;
}

void counters_close(struct counters *counters)
{
	if (!counters)
		return;
	drop(counters);
	perf_cpu_map__put(counters->cpus);
	free(counters);
}

/* --- switching and reading -------------------------------------------------------------------- */

static int each_leader(struct counters *counters, int (*call)(struct perf_evsel *))
{
	const struct events *events = &counters->plan->events;

	for (size_t i = 0; i < events->nr; i++) {
		int err = 0;

		if (events->list[i].attr.disabled) /* leaders are; they switch their group */
			err = call(counters->evsels[i]);
		if (err)
			return err;
	}
	return 0;
}

int counters_enable(struct counters *counters)
{
	return each_leader(counters, perf_evsel__enable);
}

int counters_disable(struct counters *counters)
{
	return each_leader(counters, perf_evsel__disable);
}

int counters_read_instance(struct counters *counters, size_t event, size_t instance,
			   struct count *count)
{
	/* A pinned event that could not run reads as nothing at all, which libperf does not always call
	 * an error. */
	struct perf_counts_values values = {0};
	int err = perf_evsel__read(counters->evsels[event], instance / counters->nr_threads,
				   instance % counters->nr_threads, &values);

	*count = (struct count){values.val, values.ena, values.run};
	return err;
}

int counters_read(struct counters *counters, size_t event, struct count *count)
{
	*count = (struct count){0};
	for (size_t i = 0; i < counters_instances(counters); i++) {
		struct count one;
		int err = counters_read_instance(counters, event, i, &one);

		if (err)
			return err;
		count->value += one.value;
		count->enabled_ns += one.enabled_ns;
		count->running_ns += one.running_ns;
	}
	return 0;
}

double count_scaled(const struct count *count)
{
	return (double)count->value * count->enabled_ns / count->running_ns;
}

size_t counters_instances(const struct counters *counters)
{
	return (size_t)counters->nr_cpus * counters->nr_threads;
}

int counters_fd(const struct counters *counters, size_t event, size_t instance)
{
	return libperf_fd(counters->evsels[event], instance / counters->nr_threads,
			  instance % counters->nr_threads);
}

size_t counters_unfollowed(const struct counters *counters)
{
	return counters->unfollowed;
}
