// SPDX-License-Identifier: GPL-2.0-only
#include "base/clock.h"
#include "collection/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <perf/core.h>
#include <perf/cpumap.h>
#include <perf/evsel.h>
#include <perf/threadmap.h>

#include "base/memory.h"
#include "collection/cpu_reader.h"
#include "collection/libperf_fd.h"
#include "collection/msr_counters.h"
#include "collection/solo.h"
#include "host/kernel.h"
#include "plan/denial.h"

/* An event at a place. */
struct cell {
	struct perf_evsel *evsel; /* NULL: none, or the event was opened without libperf */
	int fd;			  /* -1: not open; belongs to the evsel, if there is one */
	struct count before;	  /* of descriptors that were closed because their CPU went offline; and time
				   * in which it was disabled for another's sake */
	struct count last;	  /* of the open descriptor, when it could last be read */
	__u64 untrue_ns;	  /* in its times, see correct_times() */
	unsigned int given_up; /* number of readings since the kernel stopped trying to count it (pinned) */
};

struct counters {
	const struct plan *plan;
	struct places places;
	struct cell *cells;		  /* by place; the events of a place follow each other */
	struct cpus cpus;		  /* the target's CPUs; if it has all CPUs, every possible one */
	int folder;			  /* descriptor of the target's; -1: it has none */
	int *cgroups;			  /* descriptors of the target's cgroups, -1: not open */
	size_t nr_cgroups;		  /* the target's cgroups that have places; some may be vacant */
	struct cpu_reader *reader;	  /* NULL: each counter is read separately */
	size_t reader_cgroups;		  /* the number of cgroups that the reader has room for */
	struct cgroup_switches *switches; /* NULL: each cgroup has events of its own */
	char switches_why[160];		  /* "": they are used, or nobody wants them */
	struct msr_counters *registers;	  /* of events that perf_event does not count; NULL: there are none */
	struct cgroup_count {
		struct count now, kept; /* kept: of cgroups inside it that have been removed */
	} * of_cgroups; /* one element per cgroup and event; the events of a cgroup follow each other */
	size_t nr_of_cgroups;
	struct solo solo;
	bool unmixed; /* turns are left as the kernel has them */
	bool enabled;
	bool held;	       /* disabled by its user since it last was enabled */
	__u64 since_ns, on_ns; /* when it was enabled (CLOCK_MONOTONIC), and for how long before that */
	bool switched;	       /* enabled or disabled since all were last read */
	bool stalled;	       /* some place is stalled, or has been */
	size_t opened;	       /* places, each as often as it was opened */
	size_t unfollowed;
};

static struct cell *cell_at(const struct counters *counters, size_t event, size_t place)
{
	return &counters->cells[place * counters->plan->events.nr + event];
}

/* --- opening ---------------------------------------------------------------------------------- */

bool counters_has(const struct counters *counters, size_t event, size_t place)
{
	const struct cpus *counts = counters->plan->events.list[event].cpus;

	return !counts || cpus_has(counts, counters->places.list[place].cpu);
}

/* libperf can't pass flags, so the system call is made here. */
static int open_in_cgroup(struct cell *cell, const struct perf_event_attr *attr, int cgroup, int cpu,
			  int leader)
{
	cell->fd = syscall(SYS_perf_event_open, attr, cgroup, cpu, leader,
			   PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC);
	return cell->fd < 0 ? -errno : 0;
}

static int open_on_thread(struct cell *cell, struct perf_event_attr *attr, int cpu, pid_t tid,
			  struct perf_evsel *leader)
{
	struct perf_cpu_map *cpus = NULL; /* any */
	struct perf_thread_map *threads = had(perf_thread_map__new_array(1, &tid));
	char number[16];
	int err;

	if (cpu >= 0) {
		snprintf(number, sizeof(number), "%d", cpu);
		cpus = had(perf_cpu_map__new(number));
	}
	cell->evsel = had(perf_evsel__new(attr));
	if (leader)
		libperf_follow(cell->evsel, leader);
	err = perf_evsel__open(cell->evsel, cpus, threads);
	if (err) {
		perf_evsel__delete(cell->evsel);
		cell->evsel = NULL;
	} else {
		cell->fd = libperf_fd(cell->evsel, 0, 0);
	}
	perf_cpu_map__put(cpus);
	perf_thread_map__put(threads);
	return err;
}

/* The number of CPUs, or threads, that the places have. Their places follow each other, and are repeated for
 * each cgroup. */
static size_t nr_cpus(const struct counters *counters)
{
	return counters->nr_cgroups ? counters->places.nr / counters->nr_cgroups : counters->places.nr;
}

/* The index of an event in the reader, where those of one CPU follow each other. */
static size_t place_in_reader(const struct counters *counters, size_t event, size_t place)
{
	size_t events = counters->plan->events.nr, cpus = nr_cpus(counters);

	return (place % cpus * counters->reader_cgroups + place / cpus) * events + event;
}

static void close_cell(struct counters *counters, size_t event, size_t place)
{
	struct cell *cell = cell_at(counters, event, place);

	if (counters->reader && cell->fd >= 0)
		cpu_reader_remove(counters->reader, place_in_reader(counters, event, place));
	if (cell->evsel) {
		perf_evsel__close(cell->evsel);
		perf_evsel__delete(cell->evsel);
	} else if (cell->fd >= 0) {
		close(cell->fd);
	}
	cell->evsel = NULL;
	cell->fd = -1;
}

static void close_place(struct counters *counters, size_t place)
{
	for (size_t i = 0; i < counters->plan->events.nr; i++)
		close_cell(counters, i, place);
	solo_forget(&counters->solo, place);
	counters->places.list[place].open = false;
}

/* Opens every event at a place. Returns 0, or -errno with none of them open, and *failed is the event that
 * failed. */
static int open_place(struct counters *counters, size_t p, size_t *failed)
{
	const struct events *events = &counters->plan->events;
	struct place *place = &counters->places.list[p];
	int cgroup = place->cgroup >= 0 ? counters->cgroups[place->cgroup] : counters->folder;
	struct cell *leader = NULL;

	for (size_t i = 0; i < events->nr; i++) {
		struct perf_event_attr *attr = &events->list[i].attr;
		struct cell *cell = cell_at(counters, i, p);
		int err;

		if (!counters_has(counters, i, p) || events->list[i].msr)
			continue;
		if (event_leads(events, i))
			leader = NULL;
		err = cgroup >= 0 ? open_in_cgroup(cell, attr, cgroup, place->cpu, leader ? leader->fd : -1)
				  : open_on_thread(cell, attr, place->cpu, place->tid,
						   leader ? leader->evsel : NULL);
		if (err) {
			close_place(counters, p);
			*failed = i;
			return err;
		}
		if (!leader)
			leader = cell;
	}
	place->open = place->seen = true;
	place->stalled = false;
	counters->opened++;
	return 0;
}

static void drop_cells(struct counters *counters)
{
	for (size_t i = 0; counters->cells && i < counters->places.nr; i++)
		close_place(counters, i);
	free(counters->cells);
	counters->cells = NULL;
	counters->opened = 0;
}

/* Each event needs a descriptor for each CPU and thread. The soft limit only protects programs that use
 * select(2), so it is raised to the hard limit, less those that are kept. */
static void raise_descriptor_limit(rlim_t kept)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max > kept ? limit.rlim_max - kept : 0;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Descriptors that are kept free for the run itself: its timers, the processes it waits for, the files it
 * reads. If events took them all, the run could not even receive a request to end. */
#define KEPT_DESCRIPTORS 16

void counters_free_descriptors(void)
{
	raise_descriptor_limit(0);
}

/* Opens all events at all places whose CPU is online. Returns 0 or -errno, and *failed is the event that
 * failed. */
static int open_places(struct counters *counters, const struct cpus *online, size_t *failed)
{
	size_t nr = counters->plan->events.nr * counters->places.nr;

	counters->cells = xmalloc((nr + 1) * sizeof(*counters->cells));
	for (size_t i = 0; i < nr; i++)
		counters->cells[i] = (struct cell){.fd = -1};
	for (size_t i = 0; i < counters->places.nr; i++) {
		const struct place *place = &counters->places.list[i];
		bool there = place_online(place, online) &&
			     (place->cgroup < 0 || counters->cgroups[place->cgroup] >= 0);
		int err = there ? open_place(counters, i, failed) : 0;

		if (err)
			return err;
	}
	return 0;
}

#define ATTEMPTS 5

/*
 * A thread that appears between the listing and the opening is counted only if its parent's events were
 * already open, and there is no way to find out. If the list of threads is the same before and after, none
 * was missed; otherwise all is opened anew.
 */
static int open_on_threads(struct counters *counters, const struct host *host, size_t *failed,
			   struct refusal *refusal)
{
	const struct target *target = &counters->plan->target;
	struct places after = {0};
	int err = 0;

	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		drop_cells(counters);
		err = places_of_threads(&counters->places, target, refusal)
			      ? 1
			      : open_places(counters, &host->online, failed);
		if (err == -ESRCH)
			continue; /* one of the threads has ended */
		if (err)
			break;
		err = places_of_threads(&after, target, refusal) ? 1 : 0;
		if (err)
			break;
		counters->unfollowed = places_new(&counters->places, &after);
		if (!counters->unfollowed)
			break;
	}
	places_release(&after);
	return err;
}

static int open_cgroups(struct counters *counters, struct host *host, struct refusal *refusal)
{
	const struct target *target = &counters->plan->target;

	counters->cgroups = xmalloc((target->nr_cgroups + 1) * sizeof(*counters->cgroups));
	counters->nr_cgroups = target->nr_cgroups;
	for (size_t i = 0; i < target->nr_cgroups; i++)
		counters->cgroups[i] = -1;
	for (size_t i = 0; i < target->nr_cgroups; i++) {
		const char *path = target->cgroups[i].path;

		if (target->cgroups[i].gone)
			continue;
		counters->cgroups[i] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (counters->cgroups[i] < 0)
			return cgroup_denied(refusal, host, path, errno);
	}
	return 0;
}

static int join_switches(struct counters *counters, size_t place)
{
	size_t events = counters->plan->events.nr;
	int *fds = xcalloc(events, sizeof(*fds)), err;

	for (size_t i = 0; i < events; i++)
		fds[i] = cell_at(counters, i, place)->fd;
	err = cgroup_switches_join(counters->switches, counters->places.list[place].cpu, fds);
	free(fds);
	return err;
}

static int open_switches(struct counters *counters, const struct host *host, size_t *failed)
{
	size_t events = counters->plan->events.nr, nr = counters->plan->target.nr_cgroups;
	int err = cgroup_switches_open(&counters->switches, events, host);

	counters->of_cgroups = xcalloc(nr * events + 1, sizeof(*counters->of_cgroups));
	counters->nr_of_cgroups = nr;
	if (!err) {
		places_add_cpus(&counters->places, &counters->cpus, -1);
		err = open_places(counters, &host->online, failed);
		if (err)
			return err;
	}
	for (size_t p = 0; p < counters->places.nr && !err; p++)
		if (counters->places.list[p].open)
			err = join_switches(counters, p);
	if (!err)
		return 0;
	snprintf(counters->switches_why, sizeof(counters->switches_why),
		 "counting at switches of cgroups was refused: %s%s", strerror(-err),
		 err == -E2BIG ? ", these are too many events"
		 : err == -EINVAL || err == -ENOENT || err == -EOPNOTSUPP
			 ? ", the kernel has no such event before Linux 5.13"
			 : "");
	cgroup_switches_close(counters->switches);
	counters->switches = NULL;
	drop_cells(counters);
	counters->places.nr = 0;
	return 0;
}

/* Where nothing fits the patterns yet: a run whose every cgroup would be refused is refused now. */
static int try_cpus(struct counters *counters, const struct host *host, size_t *failed)
{
	int err;

	places_add_cpus(&counters->places, &counters->cpus, -1);
	err = open_places(counters, &host->online, failed);
	if (!err) {
		drop_cells(counters);
		counters->places.nr = 0;
	}
	return err;
}

static int open_folder(struct counters *counters, struct host *host, struct refusal *refusal)
{
	const char *path = counters->plan->target.folder;

	if (!path)
		return 0;
	counters->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return counters->folder < 0 ? cgroup_denied(refusal, host, path, errno) : 0;
}

static int open_on_cpus(struct counters *counters, struct host *host, size_t *failed, struct refusal *refusal)
{
	const struct target *target = &counters->plan->target;
	int err;

	counters->cpus = target->all_cpus ? host->possible : target->cpus;
	if (target->by_samples) {
		places_add_cpus(&counters->places, &counters->cpus, -1);
		return open_folder(counters, host, refusal) ? 1
							    : open_places(counters, &host->online, failed);
	}
	if (target->by_switches) {
		err = open_switches(counters, host, failed);
		if (err || counters->switches)
			return err;
	}
	if (target->nr_patterns && !target->nr_cgroups) {
		err = try_cpus(counters, host, failed);
		if (err)
			return err;
	}
	for (size_t i = 0; i < target->nr_cgroups; i++)
		places_add_cpus(&counters->places, &counters->cpus, i);
	if (!target_in_cgroups(target))
		places_add_cpus(&counters->places, &counters->cpus, -1);
	return open_cgroups(counters, host, refusal) ? 1 : open_places(counters, &host->online, failed);
}

/* Whether the kernel keeps the time of a cgroup's event that is disabled and enabled. Linux 6.1 stops the
 * cgroup's clock when it enables one, until it next chooses who has the counters. Up to a turn is missing in
 * the group's times, but not in its counts: the estimate of a steady program was 8 % wrong. 6.12 does not. */
static bool keeps_time(const struct target *target, const struct host *host)
{
	return (!target_in_cgroups(target) && !target->by_samples) || kernel_at_least(host, 6, 12);
}

int counters_open(struct counters **result, const struct plan *plan, pid_t child, struct host *host,
		  struct refusal *refusal)
{
	struct counters *counters = xcalloc(1, sizeof(*counters));
	const struct target *target = &plan->target;
	size_t failed = 0;
	int err;

	raise_descriptor_limit(KEPT_DESCRIPTORS + target->nr_pids + target->nr_tids);
	counters->plan = plan;
	solo_begin(&counters->solo, plan);
	counters->unmixed = !keeps_time(target, host);
	counters->folder = -1;
	if (msr_counters_open(&counters->registers, plan, host, refusal)) {
		counters_close(counters);
		return -1;
	}
	if (target->nr_pids || target->nr_tids) {
		err = open_on_threads(counters, host, &failed, refusal);
	} else if (target->cpus_given) {
		err = open_on_cpus(counters, host, &failed, refusal);
	} else {
		places_of_thread(&counters->places, child);
		err = open_places(counters, &host->online, &failed);
	}
	if (err) {
		if (err < 0)
			open_denied(refusal, host, plan, &plan->events.list[failed], -err,
				    places_online(&counters->places, &host->online));
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
	/* Closed first, so that it need not be told of each counter that is closed. */
	cpu_reader_close(counters->reader);
	counters->reader = NULL;
	cgroup_switches_close(counters->switches);
	free(counters->of_cgroups);
	drop_cells(counters);
	solo_release(&counters->solo);
	for (size_t i = 0; counters->cgroups && i < counters->nr_cgroups; i++)
		if (counters->cgroups[i] >= 0)
			close(counters->cgroups[i]);
	if (counters->folder >= 0)
		close(counters->folder);
	free(counters->cgroups);
	places_release(&counters->places);
	msr_counters_close(counters->registers);
	free(counters);
}

/* --- switching and reading -------------------------------------------------------------------- */

/* Leaders are opened disabled, and switch their whole groups. Returns 0, or -errno of the first that can't be
 * switched. */
static int switch_place(struct counters *counters, size_t place, unsigned long request)
{
	const struct events *events = &counters->plan->events;

	for (size_t i = 0; i < events->nr; i++) {
		int fd = cell_at(counters, i, place)->fd;

		if (fd >= 0 && events->list[i].attr.disabled && ioctl(fd, request, 0))
			return -errno;
	}
	return 0;
}

static int switch_all(struct counters *counters, unsigned long request)
{
	bool on = request == PERF_EVENT_IOC_ENABLE;
	int first = counters->registers ? msr_counters_switch(counters->registers, on) : 0;

	counters->switched = true;
	for (size_t i = 0; i < counters->places.nr; i++) {
		int err = switch_place(counters, i, request);

		if (!first)
			first = err;
	}
	return first;
}

/* For how long the events have been enabled. */
static __u64 time_on(const struct counters *counters)
{
	return counters->on_ns + (counters->enabled ? clock_ns(CLOCK_MONOTONIC) - counters->since_ns : 0);
}

int counters_enable_at(struct counters *counters, size_t place)
{
	return counters->enabled ? switch_place(counters, place, PERF_EVENT_IOC_ENABLE) : 0;
}

int counters_set_period(struct counters *counters, size_t event, size_t place, __u64 period)
{
	int fd = cell_at(counters, event, place)->fd;

	return fd >= 0 && ioctl(fd, PERF_EVENT_IOC_PERIOD, &period) ? -errno : 0;
}

static bool on_whole_cpu(const struct counters *counters, const struct place *at)
{
	return at->cpu >= 0 && at->cgroup < 0 && counters->folder < 0;
}

/*
 * What is true of the times of a cgroup's event. Linux 6.18 adds time to a cgroup's clock that has not passed
 * for it: if a task of the cgroup runs while a CPU's first event of any cgroup is enabled, or while the last
 * one is disabled, the clock begins at the time when it was last looked at, or goes on while nothing runs
 * (perf_cgroup_event_enable(), perf_cgroup_event_disable(), kernel/events/core.c). The values are right.
 */
static void correct_times(struct counters *counters, size_t event, struct cell *cell, struct count *now)
{
	__u64 most = time_on(counters);

	if (now->running_ns > most + cell->untrue_ns)
		cell->untrue_ns = now->running_ns - most;
	*now = count_beyond(now, &(struct count){0, cell->untrue_ns, cell->untrue_ns});
	if (events_always_run(&counters->plan->events, event))
		now->enabled_ns = now->running_ns;
	else if (now->enabled_ns > most)
		now->enabled_ns = most;
}

static void raise_to(__u64 *member, __u64 value)
{
	if (*member < value)
		*member = value;
}

/* The enabled time of a cgroup's event may go back, see above: what was counted since is taken nevertheless.
 */
static void take_of_cgroup(struct counters *counters, size_t event, struct cell *cell, struct count now)
{
	correct_times(counters, event, cell, &now);
	if (now.running_ns > cell->last.running_ns)
		cell->last.enabled_ns += now.running_ns - cell->last.running_ns;
	raise_to(&cell->last.value, now.value);
	raise_to(&cell->last.enabled_ns, now.enabled_ns);
	raise_to(&cell->last.running_ns, now.running_ns);
}

/* Takes the result of reading a cell. A pinned event that was given up reads as nothing, and so may one
 * whose CPU has gone offline: then the previous reading stays valid. */
static void take_reading(struct counters *counters, size_t event, size_t place, const struct count *now)
{
	struct cell *cell = cell_at(counters, event, place);
	struct place *at = &counters->places.list[place];
	bool of_cgroup = at->cpu >= 0 && !on_whole_cpu(counters, at);

	/* On a CPU, an enabled event's enabled time always advances, whatever runs; a cgroup's advances only
	 * while the cgroup runs. */
	if (now->enabled_ns && now->enabled_ns == cell->last.enabled_ns && counters->enabled && at->open &&
	    at->cpu >= 0 && !of_cgroup && !solo_silences(&counters->solo, counters->plan, event, place))
		counters->stalled = at->stalled = true;
	if (of_cgroup)
		take_of_cgroup(counters, event, cell, *now);
	else if (now->enabled_ns >= cell->last.enabled_ns && now->value >= cell->last.value)
		cell->last = *now;
}

static bool by_registers(const struct counters *counters, size_t event)
{
	return counters->plan->events.list[event].msr;
}

/* Reads a count in the read_format that all events have: struct count. Returns the number of bytes read, or
 * -errno. */
static int read_cell(struct counters *counters, size_t event, size_t place)
{
	struct cell *cell = cell_at(counters, event, place);
	struct count now = {0};
	int bytes;

	if (by_registers(counters, event)) {
		int err =
			msr_counters_read(counters->registers, event, counters->places.list[place].cpu, &now);

		take_reading(counters, event, place, &now);
		return err ? err : (int)sizeof(now);
	}
	if (cell->fd < 0)
		return 0;
	bytes = read(cell->fd, &now, sizeof(now));
	if (bytes < 0)
		return -errno;
	/* PERF_EVENT_STATE_ERROR: perf_read(), kernel/events/core.c. */
	cell->given_up = bytes || !counters->plan->events.list[event].attr.pinned ? 0 : cell->given_up + 1;
	take_reading(counters, event, place, &now);
	return bytes;
}

/* Adds the time that the silent groups of a place have missed to that for which they were enabled. */
static void settle_silence(struct counters *counters, size_t place)
{
	const struct cell *clock = cell_at(counters, solo_clock(&counters->solo, place), place);
	__u64 missed;

	if (!solo_is_on(&counters->solo, place))
		return;
	missed = solo_missed_ns(&counters->solo, place, clock->last.enabled_ns);
	for (size_t i = 0; i < counters->plan->events.nr; i++)
		if (solo_silences(&counters->solo, counters->plan, i, place))
			cell_at(counters, i, place)->before.enabled_ns += missed;
}

/* Must be called before the events of a place are enabled or closed. */
static void end_solo(struct counters *counters, size_t place)
{
	size_t clock = solo_clock(&counters->solo, place);

	if (!solo_is_on(&counters->solo, place))
		return;
	read_cell(counters, clock, place);
	settle_silence(counters, place);
	solo_forget(&counters->solo, place);
}

int counters_enable(struct counters *counters)
{
	if (!counters->enabled)
		counters->since_ns = clock_ns(CLOCK_MONOTONIC);
	counters->enabled = true;
	counters->held = false;
	for (size_t p = 0; p < counters->places.nr; p++)
		end_solo(counters, p);
	return switch_all(counters, PERF_EVENT_IOC_ENABLE);
}

int counters_disable(struct counters *counters)
{
	int err = switch_all(counters, PERF_EVENT_IOC_DISABLE);

	counters->on_ns = time_on(counters);
	counters->enabled = false;
	counters->held = true;
	return err;
}

static void count_of(const struct cell *cell, struct count *count)
{
	*count = cell->before;
	count_add(count, &cell->last);
}

int counters_read(struct counters *counters, size_t event, struct count *count)
{
	*count = (struct count){0};
	for (size_t i = 0; i < counters->places.nr; i++) {
		struct cell *cell = cell_at(counters, event, i);
		struct count one;
		int err = read_cell(counters, event, i);

		if (err < 0)
			return err;
		count_of(cell, &one);
		count_add(count, &one);
	}
	return 0;
}

/* Whether a time falls short of another one by more than what passes between two readings. */
static bool falls_short(__u64 of_ns, __u64 ns)
{
	return ns < of_ns - of_ns / 16;
}

/*
 * For how long the group of a pinned event, which has the times `count`, was to be counted. If the kernel
 * finds no counters for it, it doesn't try again, and the enabled time stands still too; that of other events
 * of the place goes on. The copies of a pinned event in children are given up each by itself.
 */
static __u64 wanted_ns(const struct counters *counters, size_t leader, size_t place,
		       const struct count *count)
{
	const struct place *at = &counters->places.list[place];
	unsigned int given_up = cell_at(counters, leader, place)->given_up;
	__u64 most = count->enabled_ns;

	for (size_t i = 0; i < counters->plan->events.nr; i++) {
		struct count other;

		count_of(cell_at(counters, i, place), &other);
		if (!by_registers(counters, i) && other.enabled_ns > most)
			most = other.enabled_ns;
	}
	/* Nothing else tells how long a thread has run that once had the counter. */
	if (given_up && (on_whole_cpu(counters, at) || !count->running_ns) && time_on(counters) > most)
		most = time_on(counters);
	if (given_up && most == count->running_ns)
		return most + given_up;
	return falls_short(most, count->running_ns) ? most : count->enabled_ns;
}

void counters_last(const struct counters *counters, size_t event, size_t place, struct count *count)
{
	const struct events *events = &counters->plan->events;
	size_t leader = event;

	count_of(cell_at(counters, event, place), count);
	while (!event_leads(events, leader))
		leader--;
	if (events->list[leader].attr.pinned)
		count->enabled_ns = wanted_ns(counters, leader, place, count);
}

/* --- reading them all ------------------------------------------------------------------------- */

static void put_place(struct counters *counters, size_t place)
{
	for (size_t i = 0; counters->reader && i < counters->plan->events.nr; i++) {
		int fd = cell_at(counters, i, place)->fd;

		if (fd >= 0)
			cpu_reader_put(counters->reader, place_in_reader(counters, i, place), fd);
	}
}

static void open_reader(struct counters *counters, size_t cgroups)
{
	size_t nr = counters->plan->events.nr * cpus_count(&counters->cpus) * cgroups;

	counters->reader_cgroups = cgroups;
	if (cpu_reader_open(&counters->reader, nr))
		return;
	for (size_t p = 0; p < counters->places.nr; p++)
		put_place(counters, p);
}

/* A new reader has room for twice as many cgroups and this many more, so that it need not be replaced for
 * each that appears. */
#define MORE_CGROUPS 8

void counters_expect_readings(struct counters *counters)
{
	const struct target *target = &counters->plan->target;

	if (target->cpus_given && !counters->reader)
		open_reader(counters, target->nr_patterns    ? 2 * counters->nr_cgroups + MORE_CGROUPS
				      : counters->nr_cgroups ? counters->nr_cgroups
							     : 1);
}

/* Reads one event of a thread. Its clock runs while the thread or one of its children runs, and all
 * events follow the same children. Returns whether none has run since all were last read; then no event has
 * counted anything. */
static bool slept(struct counters *counters, size_t event, size_t place)
{
	struct place *at = &counters->places.list[place];
	__u64 before = at->ran_ns;

	if (read_cell(counters, event, place) < (int)sizeof(struct count))
		return false;
	at->ran_ns = cell_at(counters, event, place)->last.enabled_ns;
	return at->ran_ns == before && !counters->switched;
}

static void read_place(struct counters *counters, size_t place, bool together)
{
	bool of_thread = counters->places.list[place].tid >= 0;
	size_t clock = solo_clock(&counters->solo, place);

	counters->places.list[place].slept = of_thread && slept(counters, clock, place);
	if (counters->places.list[place].slept)
		return;
	for (size_t i = 0; i < counters->plan->events.nr; i++) {
		const struct counter_reading *reading =
			together ? cpu_reader_at(counters->reader, place_in_reader(counters, i, place))
				 : NULL;

		if (of_thread && i == clock)
			continue;
		if (reading && !reading->error && !by_registers(counters, i))
			take_reading(
				counters, i, place,
				&(struct count){reading->value, reading->enabled_ns, reading->running_ns});
		else
			read_cell(counters, i, place);
	}
	settle_silence(counters, place);
}

/* Reads all events on the i-th CPU, or of the i-th thread. What the BPF reader can't read, for example on an
 * offline CPU, is read with read(2). */
static void read_cpu(struct counters *counters, size_t i)
{
	size_t cpus = nr_cpus(counters), events = counters->plan->events.nr;
	bool together = counters->reader && !cpu_reader_read(counters->reader, counters->places.list[i].cpu,
							     i * counters->reader_cgroups * events,
							     counters->places.nr / cpus * events);

	for (size_t p = i; p < counters->places.nr; p += cpus)
		read_place(counters, p, together);
}

/* The thread that reads each CPU's counters on that CPU. If it may not run on a CPU, it reads the counters
 * from where it is. */
static void *read_on_cpus(void *of)
{
	struct counters *counters = of;

	for (size_t i = 0; i < nr_cpus(counters); i++) {
		int cpu = counters->places.list[i].cpu;
		cpu_set_t there;

		CPU_ZERO(&there);
		if (cpu < CPU_SETSIZE)
			CPU_SET(cpu, &there);
		sched_setaffinity(0, sizeof(there), &there);
		read_cpu(counters, i);
	}
	return NULL;
}

/* Without a BPF reader, reading on each CPU pays off from this number of events on: it costs a thread and a
 * migration for each CPU, and saves an interrupt for each event and CPU. */
#define WORTH_GOING 16

/* Reads all counters in a thread that moves from CPU to CPU. It is not the calling thread, whose affinity
 * must not change, since its children inherit it. Returns whether the counters were read. */
static bool read_walking(struct counters *counters)
{
	pthread_t walker;

	return counters->plan->target.cpus_given && !counters->reader && nr_cpus(counters) > 1 &&
	       counters->plan->events.nr >= WORTH_GOING &&
	       !pthread_create(&walker, NULL, read_on_cpus, counters) && !pthread_join(walker, NULL);
}

void counters_read_all(struct counters *counters)
{
	if (!read_walking(counters))
		for (size_t i = 0; i < nr_cpus(counters); i++)
			read_cpu(counters, i);
	counters->switched = false;
}

bool counters_take_turns(const struct counters *counters, size_t event)
{
	return solo_takes_turns(&counters->solo, counters->plan, event);
}

static void switch_solo(struct counters *counters, size_t place)
{
	struct solo *solo = &counters->solo;
	size_t events = counters->plan->events.nr;
	int *fds = xcalloc(events, sizeof(*fds));

	for (size_t i = 0; i < events; i++)
		fds[i] = cell_at(counters, i, place)->fd;
	solo_switch(solo, place, fds,
		    solo->alone == SOLO_NONE ? 0 : cell_at(counters, solo->alone, place)->last.enabled_ns);
	free(fds);
	/* Another event's clock is looked at from now on. */
	counters->places.list[place].ran_ns =
		cell_at(counters, solo_clock(solo, place), place)->last.enabled_ns;
}

/* Each costs a system call, and on another CPU an interrupt: if there are more groups at all places, only a
 * part of the places take part at a time. */
#define SWITCHES_MOST 500

bool counters_mix_turns(struct counters *counters, bool mix)
{
	struct solo *solo = &counters->solo;
	size_t parts = counters->places.nr * solo->nr / SWITCHES_MOST + 1;

	if (counters->held || counters->switches || counters->unmixed || !solo->nr)
		return false;
	solo_choose(solo, mix);
	for (size_t p = 0; p < counters->places.nr; p++) {
		const struct place *place = &counters->places.list[p];
		bool part = !place->slept && (p + solo->rounds) % parts == 0;

		if (place->open && (part || solo_is_on(solo, p)))
			switch_solo(counters, p);
	}
	return solo->alone != SOLO_NONE;
}

const struct places *counters_places(const struct counters *counters)
{
	return &counters->places;
}

size_t counters_opened(const struct counters *counters)
{
	return counters->opened;
}

int counters_fd(const struct counters *counters, size_t event, size_t place)
{
	return cell_at(counters, event, place)->fd;
}

__u64 counters_pace(const struct counters *counters)
{
	return msr_counters_pace(counters->registers);
}

const char *counters_lost(struct counters *counters, size_t event)
{
	return msr_counters_lost(counters->registers, event);
}

size_t counters_unfollowed(const struct counters *counters)
{
	return counters->unfollowed;
}

/* --- CPUs that go and come -------------------------------------------------------------------- */

/* Closes a cell and keeps its count. */
static void retire_cell(struct counters *counters, size_t event, size_t place)
{
	struct cell *cell = cell_at(counters, event, place);

	if (by_registers(counters, event))
		return; /* the registers are shared by other CPUs of the package */
	read_cell(counters, event, place);
	count_add(&cell->before, &cell->last);
	cell->last = (struct count){0};
	cell->untrue_ns = 0;
	close_cell(counters, event, place);
}

/* Events whose counter is shared by several CPUs stay open: the kernel moves them to another of these CPUs
 * (perf_pmu_migrate_context()). */
void counters_leave(struct counters *counters, int cpu)
{
	const struct events *events = &counters->plan->events;

	for (size_t p = 0; p < counters->places.nr; p++) {
		struct place *place = &counters->places.list[p];

		if (place->cpu != cpu || !place->open)
			continue;
		if (counters->switches)
			cgroup_switches_leave(counters->switches, cpu);
		end_solo(counters, p);
		for (size_t i = 0; i < events->nr; i++)
			if (!events->list[i].cpus)
				retire_cell(counters, i, p);
		place->open = false;
	}
}

bool counters_stalled(const struct counters *counters)
{
	return counters->stalled;
}

int counters_join(struct counters *counters, size_t place)
{
	size_t failed;
	int err;

	end_solo(counters, place);
	for (size_t i = 0; i < counters->plan->events.nr; i++)
		retire_cell(counters, i, place);
	err = open_place(counters, place, &failed);
	if (!err && counters->switches)
		err = join_switches(counters, place);
	if (!err)
		put_place(counters, place);
	return err;
}

/* --- cgroups that go and come ----------------------------------------------------------------- */

__u64 counters_cgroup_id(const struct counters *counters, size_t i)
{
	struct stat folder;

	return counters->cgroups && counters->cgroups[i] >= 0 && !fstat(counters->cgroups[i], &folder)
		       ? folder.st_ino
		       : 0;
}

bool counters_has_cgroup(const struct counters *counters, size_t i)
{
	struct stat there;

	return !stat(counters->plan->target.cgroups[i].path, &there) &&
	       there.st_ino == counters_cgroup_id(counters, i);
}

/* --- cgroups by switches ------------------------------------------------------------------------ */

bool counters_by_switches(const struct counters *counters)
{
	return counters->switches;
}

const char *counters_switches_why(const struct counters *counters)
{
	return counters->switches_why[0] ? counters->switches_why : NULL;
}

static struct cgroup_count *count_of_cgroup(const struct counters *counters, size_t i, size_t event)
{
	return &counters->of_cgroups[i * counters->plan->events.nr + event];
}

static void take_in_by_switches(struct counters *counters, size_t i)
{
	size_t events = counters->plan->events.nr;

	if (i == counters->nr_of_cgroups)
		counters->of_cgroups = xrealloc(counters->of_cgroups, ++counters->nr_of_cgroups * events *
									      sizeof(*counters->of_cgroups));
	else if (!(counters->plan->target.per & PER_CGROUP))
		return;
	memset(count_of_cgroup(counters, i, 0), 0, events * sizeof(*counters->of_cgroups));
}

void counters_gather(struct counters *counters)
{
	cgroup_switches_gather(counters->switches);
	for (size_t i = 0; i < counters->nr_of_cgroups * counters->plan->events.nr; i++)
		counters->of_cgroups[i].now = counters->of_cgroups[i].kept;
}

void counters_each_sums(const struct counters *counters, cgroup_sums_fn each, void *context)
{
	cgroup_switches_each(counters->switches, each, context);
}

void counters_put_cgroup(struct counters *counters, size_t i, const struct count *counts)
{
	for (size_t event = 0; event < counters->plan->events.nr; event++)
		count_add(&count_of_cgroup(counters, i, event)->now, &counts[event]);
}

void counters_last_cgroup(const struct counters *counters, size_t event, size_t i, struct count *count)
{
	*count = count_of_cgroup(counters, i, event)->now;
}

void counters_release_sums(struct counters *counters, __u64 id)
{
	cgroup_switches_release(counters->switches, id);
}

void counters_keep_sums(struct counters *counters, size_t i, const struct count *counts)
{
	for (size_t event = 0; event < counters->plan->events.nr; event++)
		count_add(&count_of_cgroup(counters, i, event)->kept, &counts[event]);
}

void counters_move_cgroup(struct counters *counters, size_t from, size_t to)
{
	for (size_t event = 0; event < counters->plan->events.nr; event++) {
		struct cgroup_count *source = count_of_cgroup(counters, from, event),
				    *sum = count_of_cgroup(counters, to, event);

		count_add(&sum->now, &source->now);
		count_add(&sum->kept, &source->kept);
		*source = (struct cgroup_count){0};
	}
}

void counters_switches(const struct counters *counters, __u64 *all, __u64 *missed)
{
	cgroup_switches_account(counters->switches, all, missed);
}

void counters_take_in_cgroup(struct counters *counters, size_t i)
{
	size_t events = counters->plan->events.nr, first = counters->places.nr;

	if (counters->switches)
		take_in_by_switches(counters, i);
	if (!counters->cgroups)
		return;
	if (i < counters->nr_cgroups) {
		for (size_t p = 0; p < first; p++)
			if (counters->places.list[p].cgroup == (int)i &&
			    counters->plan->target.per & PER_CGROUP)
				for (size_t event = 0; event < events; event++)
					cell_at(counters, event, p)->before = (struct count){0};
		return;
	}
	counters->cgroups = xrealloc(counters->cgroups, (i + 1) * sizeof(*counters->cgroups));
	counters->cgroups[i] = -1;
	counters->nr_cgroups = i + 1;
	places_add_cpus(&counters->places, &counters->cpus, i);
	counters->cells = xrealloc(counters->cells, counters->places.nr * events * sizeof(*counters->cells));
	for (size_t c = first * events; c < counters->places.nr * events; c++)
		counters->cells[c] = (struct cell){.fd = -1};
	if (!counters->reader || counters->nr_cgroups <= counters->reader_cgroups)
		return;
	cpu_reader_close(counters->reader);
	counters->reader = NULL;
	open_reader(counters, 2 * counters->nr_cgroups);
}

static void set_away(struct counters *counters, size_t i, bool away)
{
	for (size_t p = 0; p < counters->places.nr; p++)
		if (counters->places.list[p].cgroup == (int)i)
			counters->places.list[p].away = away;
}

void counters_leave_cgroup(struct counters *counters, size_t i)
{
	for (size_t p = 0; p < counters->places.nr; p++) {
		struct place *place = &counters->places.list[p];

		if (place->cgroup != (int)i || !place->open)
			continue;
		end_solo(counters, p);
		for (size_t event = 0; event < counters->plan->events.nr; event++)
			retire_cell(counters, event, p);
		place->open = false;
	}
	set_away(counters, i, true);
	if (!counters->cgroups)
		return;
	if (counters->cgroups[i] >= 0)
		close(counters->cgroups[i]);
	counters->cgroups[i] = -1;
}

bool counters_lost_folder(const struct counters *counters)
{
	struct stat open, there;

	return counters->folder >= 0 && !fstat(counters->folder, &open) &&
	       (stat(counters->plan->target.folder, &there) || there.st_ino != open.st_ino);
}

void counters_leave_folder(struct counters *counters)
{
	for (size_t p = 0; p < counters->places.nr; p++) {
		end_solo(counters, p);
		for (size_t event = 0; counters->places.list[p].open && event < counters->plan->events.nr;
		     event++)
			retire_cell(counters, event, p);
		counters->places.list[p].open = false;
	}
	close(counters->folder);
	counters->folder = -1;
}

int counters_join_cgroup(struct counters *counters, size_t i)
{
	if (!counters->cgroups)
		return 0;
	counters->cgroups[i] =
		open(counters->plan->target.cgroups[i].path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (counters->cgroups[i] < 0)
		return -errno;
	set_away(counters, i, false);
	return 0;
}

/* --- threads whose events are theirs no more --------------------------------------------------- */

/* The first event that is open at a place, which leads a group; -1: none is. */
static int leader_at(const struct counters *counters, size_t place)
{
	for (size_t i = 0; i < counters->plan->events.nr; i++)
		if (event_leads(&counters->plan->events, i) && cell_at(counters, i, place)->fd >= 0)
			return i;
	return -1;
}

/* Tries to add an event, which is never enabled, to a group in a thread: the kernel allows it if the group is
 * there. Returns 0; -EINVAL, or -ENODEV of later kernels, if it isn't; or another -errno. */
static int try_thread(const struct perf_event_attr *leader, int group_fd, pid_t tid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.inherit = leader->inherit,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.use_clockid = leader->use_clockid,
		.clockid = leader->clockid,
	};
	int sibling = syscall(SYS_perf_event_open, &attr, tid, -1, group_fd, PERF_FLAG_FD_CLOEXEC);

	if (sibling < 0)
		return -errno;
	close(sibling);
	return 0;
}

/* Whether the events of a place belong to the thread of this id: 0, or -errno. */
static int belongs_to(const struct counters *counters, size_t place, int of, pid_t tid)
{
	const struct perf_event_attr *leader = &counters->plan->events.list[of].attr;
	int err = try_thread(leader, cell_at(counters, of, place)->fd, tid);

	/* A thread that is just ending has no group either. */
	return (err == -EINVAL || err == -ENODEV) && try_thread(leader, -1, tid) == -ESRCH ? -ESRCH : err;
}

/* Finds the place whose thread has got the id of this place's thread, and notes that; -1: there is none. */
static int find_successor(struct counters *counters, size_t place)
{
	struct place *list = counters->places.list;

	for (size_t i = 0; i < counters->places.nr; i++) {
		int of = i == place ? -1 : leader_at(counters, i);

		if (of < 0 || belongs_to(counters, i, of, list[place].id))
			continue;
		list[i].id = list[place].id;
		list[i].ended = false;
		return i;
	}
	return -1;
}

/* Looks at a thread. Returns whether something with its id goes on uncounted. */
static bool check_thread(struct counters *counters, size_t p, int of)
{
	struct place *place = &counters->places.list[p];
	uid_t owner;
	int err = belongs_to(counters, p, of, place->id);
	place->ended = err == -ESRCH;
	if (err != -EINVAL && err != -ENODEV && err != -EACCES && err != -EPERM)
		return false;
	owner = place_owner(place->id);
	place->ended = find_successor(counters, p) >= 0;
	if (place->ended || owner == (uid_t)-1)
		return false;
	place->taken = owner != place->owner;
	place->ended = !place->taken;
	/* Of a process, a thread that came later has events, too, which have no descriptor. */
	return place->taken || counters->plan->target.nr_tids;
}

int counters_look_at_threads(struct counters *counters)
{
	for (size_t p = 0; p < counters->places.nr; p++) {
		struct place *place = &counters->places.list[p];
		struct count now = {0};
		int of = place->id > 0 && !place->ended && !place->taken ? leader_at(counters, p) : -1;

		/* What has not run since has lost nothing since. */
		if (of < 0 || read(cell_at(counters, of, p)->fd, &now, sizeof(now)) < (int)sizeof(now) ||
		    (now.enabled_ns && now.enabled_ns == place->sure_ns))
			continue;
		if (check_thread(counters, p, of))
			return p;
		place->sure_ns = now.enabled_ns;
	}
	return -1;
}

bool counters_taken(const struct counters *counters)
{
	bool any = false;

	for (size_t p = 0; p < counters->places.nr; p++) {
		const struct place *place = &counters->places.list[p];

		if (place->id > 0 && place->open && !place->ended && !place->taken)
			return false;
		any = any || place->taken;
	}
	return any;
}

pid_t counters_process(const struct counters *counters, pid_t id)
{
	for (size_t p = 0; p < counters->places.nr; p++)
		if (counters->places.list[p].tid == id && counters->places.list[p].process)
			return counters->places.list[p].process;
	return id;
}

pid_t counters_go_on(struct counters *counters, pid_t was)
{
	for (size_t p = 0; p < counters->places.nr; p++) {
		struct place *place = &counters->places.list[p];
		int of = place->tid == was && place->process ? leader_at(counters, p) : -1;

		if (of < 0 || place->process == was || belongs_to(counters, p, of, place->process))
			continue;
		place->id = place->process;
		place->ended = false;
		return place->id;
	}
	return 0;
}
