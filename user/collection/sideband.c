// SPDX-License-Identifier: GPL-2.0-only
#include "collection/sideband.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <perf/core.h>
#include <perf/cpumap.h>
#include <perf/event.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <perf/mmap.h>
#include <perf/threadmap.h>

#include "collection/libperf_fd.h"
#include "collection/places.h"
#include "host/processes.h"
#include "memory.h"

/* A ring's size. A dynamically linked program's start is about 1 KiB of notes, and they are read
 * some milliseconds later. */
#define RING_PAGES 64

/* Descriptors that following the threads of given processes may take; beyond, all processes are
 * listened to, by one a CPU. */
#define DESCRIPTORS_MOST 256

/* A ring, and its oldest note. */
struct ring {
	struct perf_mmap *map;
	const union perf_event *event; /* NULL: none is held */
	__u64 time;
};

struct sideband {
	struct perf_evlist *list;
	struct perf_evsel *evsel;
	struct perf_cpu_map *cpus;
	struct perf_thread_map *threads;
	int epoll;
	struct ring *rings;
	size_t nr_rings;
	struct ring *handed_out; /* whose oldest note the caller has; NULL: none */
	__u64 lost;
};

/* --- opening ---------------------------------------------------------------------------------- */

static int say_nothing(enum libperf_print_level level, const char *format, va_list args)
{
	return 0;
}

/* What later kernels can tell besides. */
struct extras {
	bool cgroups;	/* since 5.7 */
	bool build_ids; /* since 5.12 */
};

static int open_event(struct sideband *sideband, struct extras extras)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1, /* the time is behind every note */
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.exclude_kernel = 1, /* counts nothing anyway, and so asks for less permission */
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.cgroup = extras.cgroups,
		.build_id = extras.build_ids,
		.watermark = 1, /* in bytes: any note wakes the reader */
		.wakeup_watermark = 1,
		.inherit = perf_thread_map__pid(sideband->threads, 0) > 0,
	};

	sideband->list = had(perf_evlist__new());
	sideband->evsel = had(perf_evsel__new(&attr));
	perf_evlist__add(sideband->list, sideband->evsel);
	perf_evlist__set_maps(sideband->list, sideband->cpus, sideband->threads);
	return perf_evlist__open(sideband->list);
}

static void close_event(struct sideband *sideband)
{
	if (!sideband->list)
		return;
	perf_evlist__munmap(sideband->list);
	perf_evlist__close(sideband->list);
	perf_evlist__delete(sideband->list);
	sideband->list = NULL;
}

/* The process that a thread belongs to; 0 if it has ended. */
static pid_t process_of(pid_t tid)
{
	char name[64], *line = NULL;
	size_t size = 0;
	int pid = 0;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/status", (int)proc_number(tid));
	file = fopen(name, "re");
	while (file && getline(&line, &size, file) > 0)
		if (sscanf(line, "Tgid: %d", &pid) == 1)
			break;
	free(line);
	if (file)
		fclose(file);
	return pid;
}

size_t sideband_processes(const struct target *target, pid_t **pids)
{
	size_t nr = 0;

	*pids = xcalloc(target->nr_pids + target->nr_tids + 1, sizeof(**pids));
	for (size_t i = 0; i < target->nr_pids; i++)
		(*pids)[nr++] = target->pids[i];
	for (size_t i = 0; i < target->nr_tids; i++)
		(*pids)[nr++] = process_of(target->tids[i]);
	return nr;
}

/* All threads of the target's processes, because any of them may map a file for the others; NULL: there
 * are too many, or one has ended. */
static struct perf_thread_map *threads_of_processes(const struct target *target, int nr_cpus)
{
	struct target processes = {0};
	struct places places = {0};
	struct perf_thread_map *map = NULL;
	struct refusal refusal;

	processes.nr_pids = sideband_processes(target, &processes.pids);
	if (processes.nr_pids && !places_of_threads(&places, &processes, &refusal) && places.nr &&
	    places.nr * nr_cpus <= DESCRIPTORS_MOST) {
		pid_t tids[places.nr];

		for (size_t i = 0; i < places.nr; i++)
			tids[i] = places.list[i].tid;
		map = had(perf_thread_map__new_array(places.nr, tids));
	}
	places_release(&places);
	free(processes.pids);
	return map;
}

/* Whom to listen to. */
static struct perf_thread_map *threads_of(const struct target *target, pid_t child, int nr_cpus)
{
	struct perf_thread_map *map = NULL;

	if (!target->cpus_given && child)
		map = had(perf_thread_map__new_array(1, &child));
	else if (!target->cpus_given)
		map = threads_of_processes(target, nr_cpus);
	return map ? map : had(perf_thread_map__new_dummy()); /* -1: all processes */
}

static int open_rings(struct sideband *sideband, int nr_cpus)
{
	struct perf_mmap *map;

	if (perf_evlist__mmap(sideband->list, RING_PAGES))
		return -errno;
	perf_evlist__for_each_mmap(sideband->list, map, false)
	{
		struct ring *ring;

		sideband->rings =
			xrealloc(sideband->rings, (sideband->nr_rings + 1) * sizeof(*sideband->rings));
		ring = &sideband->rings[sideband->nr_rings++];
		*ring = (struct ring){.map = map};
		perf_mmap__read_init(map);
	}
	sideband->epoll = epoll_create1(EPOLL_CLOEXEC);
	/* Of a CPU's threads the first one has the ring; the others write into it. */
	for (int cpu = 0; cpu < nr_cpus; cpu++) {
		/* Edges: the ring of a thread that has ended is "hung up" for ever. */
		struct epoll_event readable = {.events = EPOLLIN | EPOLLET};

		if (epoll_ctl(sideband->epoll, EPOLL_CTL_ADD, libperf_fd(sideband->evsel, cpu, 0), &readable))
			return -errno;
	}
	return 0;
}

static int open_all(struct sideband *sideband, int nr_cpus)
{
	static const struct extras tries[] = {{true, true}, {true, false}, {false, false}};
	int err = -EINVAL;

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]) && err == -EINVAL; i++) {
		close_event(sideband);
		err = open_event(sideband, tries[i]);
	}
	return err ? err : open_rings(sideband, nr_cpus);
}

int sideband_open(struct sideband **result, const struct target *target, pid_t child, const struct host *host,
		  struct refusal *refusal)
{
	struct sideband *sideband = xcalloc(1, sizeof(*sideband));
	int nr_cpus = cpus_count(&host->online), err;
	char cpus[4096];

	libperf_init(say_nothing); /* it then knows the size of a page, too, which rings need */
	sideband->epoll = -1;
	sideband->cpus = perf_cpu_map__new(cpus_print(&host->online, cpus, sizeof(cpus)));
	sideband->threads = threads_of(target, child, nr_cpus);
	err = open_all(sideband, nr_cpus);
	if (err == -ESRCH) { /* a thread has ended in the meantime */
		close_event(sideband);
		perf_thread_map__put(sideband->threads);
		sideband->threads = had(perf_thread_map__new_dummy());
		err = open_all(sideband, nr_cpus);
	}
	if (!err) {
		*result = sideband;
		return 0;
	}
	sideband_close(sideband);
	refuse(refusal, STATUS_REFUSED, "learning which files processes map");
	refusal->error = -err;
	because(refusal, "the kernel's notes of it can't be opened on %d CPUs: %s", nr_cpus, strerror(-err));
	return instead(refusal, err == -EMFILE ? "raise the limit of open files (ulimit -n)"
				: err == -EPERM || err == -EACCES
					? "CAP_PERFMON, or aggregate by keys that need no names (--by ip)"
					: "aggregate by keys that need no names (--by ip)");
}

void sideband_close(struct sideband *sideband)
{
	if (!sideband)
		return;
	close_event(sideband);
	if (sideband->epoll >= 0)
		close(sideband->epoll);
	perf_cpu_map__put(sideband->cpus);
	perf_thread_map__put(sideband->threads);
	free(sideband->rings);
	free(sideband);
}

int sideband_fd(const struct sideband *sideband)
{
	return sideband->epoll;
}

void sideband_woken(struct sideband *sideband)
{
	struct epoll_event events[64];

	while (epoll_wait(sideband->epoll, events, 64, 0) == 64)
		;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Behind every note. libperf copies one that goes around the ring's end, and no more than its own
 * union is long: the time of one with so long a path is that of the note before. */
static __u64 time_of(const union perf_event *event, __u64 otherwise)
{
	__u64 time;

	if (event->header.size > sizeof(*event))
		return otherwise;
	memcpy(&time, (const char *)event + event->header.size - sizeof(time), sizeof(time));
	return time;
}

static void mapped(const union perf_event *event, struct sideband_note *note)
{
	const struct perf_record_mmap2 *mmap2 = &event->mmap2;

	note->kind = SIDEBAND_MAPPED;
	note->pid = mmap2->pid;
	note->begin = mmap2->start;
	note->size = mmap2->len;
	note->offset = mmap2->pgoff;
	note->path = mmap2->filename;
	if (!(event->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		note->device = makedev(mmap2->maj, mmap2->min);
		note->inode = mmap2->ino;
		return;
	}
	if (mmap2->build_id_size > BUILD_ID_MAX)
		return;
	note->build_id_size = mmap2->build_id_size;
	memcpy(note->build_id, mmap2->build_id, note->build_id_size);
}

/* What a note is about; false: nothing that is asked for. */
static bool read_note(struct sideband *sideband, const union perf_event *event, struct sideband_note *note)
{
	switch (event->header.type) {
	case PERF_RECORD_MMAP2:
		mapped(event, note);
		return true;
	case PERF_RECORD_COMM:
		note->kind = SIDEBAND_EXECUTED;
		note->pid = event->comm.pid;
		return event->header.misc & PERF_RECORD_MISC_COMM_EXEC;
	case PERF_RECORD_FORK:
		note->kind = SIDEBAND_FORKED;
		note->pid = event->fork.pid;
		note->parent = event->fork.ppid;
		return event->fork.pid != event->fork.ppid;
	case PERF_RECORD_EXIT:
		note->kind = SIDEBAND_EXITED;
		note->pid = event->fork.pid;
		return event->fork.pid == event->fork.tid;
	case PERF_RECORD_CGROUP:
		note->kind = SIDEBAND_CGROUP;
		note->cgroup = event->cgroup.id;
		note->path = event->cgroup.path;
		return true;
	case PERF_RECORD_LOST:
		sideband->lost += event->lost.lost;
		return false;
	}
	return false;
}

/* Returns whether the event is one that the caller wants. The kernel numbers processes as nhmtap's pid
 * namespace does; those that are in none of its have all the same number, 0, or -1 once they have ended
 * (perf_event_pid_type(), kernel/events/core.c). */
static bool note_of(struct sideband *sideband, const union perf_event *event, struct sideband_note *note)
{
	return read_note(sideband, event, note) && (note->pid > 0 || note->kind == SIDEBAND_CGROUP);
}

/* The ring's oldest note is then held, if it has one. Without perf_mmap__read_done(), which would
 * step over what has come since the last look. */
static bool hold(struct ring *ring)
{
	if (ring->event)
		return true;
	ring->event = perf_mmap__read_event(ring->map);
	if (ring->event)
		ring->time = time_of(ring->event, ring->time);
	return ring->event;
}

static void let_go(struct ring *ring)
{
	perf_mmap__consume(ring->map);
	ring->event = NULL;
}

static struct ring *oldest(struct sideband *sideband, __u64 before)
{
	struct ring *found = NULL;

	for (size_t i = 0; i < sideband->nr_rings; i++) {
		struct ring *ring = &sideband->rings[i];

		if (!hold(ring) || ring->time >= before || (found && found->time <= ring->time))
			continue;
		found = ring;
	}
	return found;
}

bool sideband_next(struct sideband *sideband, __u64 before, struct sideband_note *note)
{
	struct ring *ring;

	if (sideband->handed_out)
		let_go(sideband->handed_out);
	sideband->handed_out = NULL;
	while ((ring = oldest(sideband, before))) {
		*note = (struct sideband_note){.time = ring->time};
		if (note_of(sideband, ring->event, note)) {
			sideband->handed_out = ring;
			return true;
		}
		let_go(ring);
	}
	return false;
}

__u64 sideband_lost(const struct sideband *sideband)
{
	return sideband->lost;
}
