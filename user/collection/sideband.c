// SPDX-License-Identifier: GPL-2.0-only
#include "collection/sideband.h"

#include <errno.h>
#include <limits.h>
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

#include "base/array.h"
#include "base/memory.h"
#include "collection/libperf_fd.h"
#include "collection/places.h"
#include "host/processes.h"

/* A ring's size. The start of a dynamically linked program writes about 1 KiB of notes, and they are read
 * some milliseconds later. */
#define RING_PAGES	  64
#define KERNEL_RING_PAGES 4 /* BPF programs are loaded rarely */

/* The most descriptors for following the threads of given processes; if more would be needed, all processes
 * are followed, with one descriptor per CPU. */
#define DESCRIPTORS_MOST 256

/* A CPU's event and its ring, with the oldest note. */
struct ring {
	int cpu;
	bool of_all; /* has the notes of every process on this CPU; ends when the CPU goes offline */
	struct perf_evlist *list;
	struct perf_evsel *evsel;
	struct perf_mmap *map;
	const union perf_event *event; /* NULL: none is held */
	__u64 time;
};

struct sideband {
	struct perf_thread_map *threads; /* the threads to listen to on the CPUs that were online at first */
	int epoll;
	bool data;    /* listens to mappings without code, too */
	bool kernel;  /* listens to KSYMBOL alone */
	bool cgroups; /* listens to CGROUP alone */
	struct ring **rings;
	size_t nr_rings;
	struct ring *handed_out; /* the caller has its oldest note; NULL: none */
	__u64 lost;
	__u64 forks;
	bool partial; /* notes may be missing that the kernel did not report as lost */
};

/* --- opening ---------------------------------------------------------------------------------- */

static int say_nothing(enum libperf_print_level level, const char *format, va_list args)
{
	return 0;
}

/* Kinds of notes that older kernels do not write. */
struct extras {
	bool cgroups;	/* since 5.7 */
	bool build_ids; /* since 5.12 */
};

static bool every_process(struct perf_thread_map *threads)
{
	return perf_thread_map__pid(threads, 0) <= 0;
}

static int open_event(struct ring *ring, const struct sideband *of, struct perf_thread_map *threads,
		      struct extras extras)
{
	bool kernel = of->kernel, processes = !kernel && !of->cgroups;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1, /* appends the time to every note */
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.exclude_kernel = 1, /* it counts nothing; without the kernel it needs less permission */
		.mmap = processes,
		.mmap2 = processes,
		.mmap_data = of->data,
		.comm = processes,
		.comm_exec = processes,
		.task = processes,
		.cgroup = !kernel && extras.cgroups,
		.build_id = processes && extras.build_ids,
		.ksymbol = kernel,
		/* An event for notes of cgroups alone gets none: is_sb_event(), kernel/events/core.c, forgets
		 * them. Those of BPF programs are the rarest beside. */
		.bpf_event = of->cgroups,
		/* The watermark is in bytes: any note wakes the reader, unless it is needed only with names.
		 */
		.watermark = 1,
		.wakeup_watermark = of->cgroups ? RING_PAGES * 4096 / 2 : 1,
		.inherit = !every_process(threads),
	};
	struct perf_cpu_map *cpus;
	char number[16];
	int err;

	snprintf(number, sizeof(number), "%d", ring->cpu);
	cpus = had(perf_cpu_map__new(number));
	ring->of_all = every_process(threads);
	ring->list = had(perf_evlist__new());
	ring->evsel = had(perf_evsel__new(&attr));
	perf_evlist__add(ring->list, ring->evsel);
	perf_evlist__set_maps(ring->list, cpus, threads);
	perf_cpu_map__put(cpus);
	err = perf_evlist__open(ring->list);
	if (!err && perf_evlist__mmap(ring->list, kernel ? KERNEL_RING_PAGES : RING_PAGES))
		err = -errno;
	return err;
}

static void close_event(struct ring *ring)
{
	if (!ring->list)
		return;
	perf_evlist__munmap(ring->list);
	perf_evlist__close(ring->list);
	libperf_release_maps(ring->evsel);
	perf_evlist__delete(ring->list);
	ring->list = NULL;
}

static int watch_ring(struct sideband *sideband, const struct ring *ring)
{
	/* Edge-triggered, since the ring of a thread that has ended reports a hangup forever. The first of
	 * several threads owns the ring; the others write into it. */
	struct epoll_event readable = {.events = EPOLLIN | EPOLLET};

	return epoll_ctl(sideband->epoll, EPOLL_CTL_ADD, libperf_fd(ring->evsel, 0, 0), &readable) ? -errno
												   : 0;
}

/* Begins to listen on a CPU. Returns 0 or -errno. */
static int open_ring(struct sideband *sideband, struct perf_thread_map *threads, int cpu)
{
	static const struct extras tries[] = {{true, true}, {true, false}, {false, false}};
	struct ring *ring = xcalloc(1, sizeof(*ring));
	int err = -EINVAL;

	ring->cpu = cpu;
	for (size_t i = 0; i < ARRAY_SIZE(tries) && err == -EINVAL; i++) {
		close_event(ring);
		err = open_event(ring, sideband, threads, tries[i]);
	}
	if (!err)
		err = watch_ring(sideband, ring);
	if (err) {
		close_event(ring);
		free(ring);
		return err;
	}
	perf_evlist__for_each_mmap(ring->list, ring->map, false) {
		perf_mmap__read_init(ring->map);
		break;
	}
	*xappend(sideband->rings, sideband->nr_rings) = ring;
	return 0;
}

static void close_ring(struct sideband *sideband, size_t i)
{
	struct ring *ring = sideband->rings[i];

	if (sideband->handed_out == ring)
		sideband->handed_out = NULL;
	close_event(ring);
	free(ring);
	sideband->rings[i] = sideband->rings[--sideband->nr_rings];
}

/* The process that a thread belongs to; 0 if it has ended. */
static pid_t process_of(pid_t tid)
{
	char pid[32];

	return proc_status(tid, "Tgid:", pid, sizeof(pid)) ? atoi(pid) : 0;
}

size_t sideband_processes(const struct target *target, pid_t **pids)
{
	size_t nr = 0;

	*pids = xcalloc(target->nr_pids + target->nr_tids + 1, sizeof(**pids));
	for (size_t i = 0; i < target->nr_pids; i++)
		(*pids)[nr++] = process_of(target->pids[i]);
	for (size_t i = 0; i < target->nr_tids; i++)
		(*pids)[nr++] = process_of(target->tids[i]);
	return nr;
}

/* All threads of the target's processes, because each may map a file for the others; NULL if there are too
 * many, or one has ended. */
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

/* The threads to listen to. */
static struct perf_thread_map *threads_of(const struct target *target, pid_t child, int nr_cpus)
{
	struct perf_thread_map *map = NULL;

	if (!target->cpus_given && child)
		map = had(perf_thread_map__new_array(1, &child));
	else if (!target->cpus_given)
		map = threads_of_processes(target, nr_cpus);
	return map ? map : had(perf_thread_map__new_dummy()); /* -1: all processes */
}

static int open_all(struct sideband *sideband, const struct cpus *online)
{
	int err = 0;

	for (int cpu = cpus_next(online, 0); cpu >= 0 && !err; cpu = cpus_next(online, cpu + 1))
		err = open_ring(sideband, sideband->threads, cpu);
	while (err && sideband->nr_rings)
		close_ring(sideband, 0);
	return err;
}

/* A thread that appears between the listing and the opening is followed only if its parent was already. If
 * the list is the same afterwards, none was missed. */
static bool same_threads(struct perf_thread_map *before, const struct target *target, int nr_cpus)
{
	struct perf_thread_map *now = threads_of_processes(target, nr_cpus);
	int nr = perf_thread_map__nr(before);
	bool same = now && perf_thread_map__nr(now) == nr;

	for (int i = 0; i < nr && same; i++)
		same = perf_thread_map__pid(now, i) == perf_thread_map__pid(before, i);
	perf_thread_map__put(now);
	return same;
}

int sideband_open(struct sideband **result, const struct target *target, pid_t child, bool data,
		  const struct host *host, struct refusal *refusal)
{
	struct sideband *sideband = xcalloc(1, sizeof(*sideband));
	int nr_cpus = cpus_count(&host->online), err;

	libperf_init(say_nothing); /* this also tells libperf the page size, which rings need */
	sideband->data = data;
	sideband->epoll = epoll_create1(EPOLL_CLOEXEC);
	sideband->threads = threads_of(target, child, nr_cpus);
	err = sideband->epoll < 0 ? -errno : open_all(sideband, &host->online);
	if (err == -ESRCH) { /* a thread has ended in the meantime */
		perf_thread_map__put(sideband->threads);
		sideband->threads = had(perf_thread_map__new_dummy());
		err = open_all(sideband, &host->online);
	}
	if (!err) {
		sideband->partial = !child && !every_process(sideband->threads) &&
				    !same_threads(sideband->threads, target, nr_cpus);
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

/* Opens notes of all CPUs that are about no process. */
static int open_general(struct sideband **result, const struct sideband *kind, const struct host *host)
{
	struct sideband *sideband = xcalloc(1, sizeof(*sideband));
	int err;

	libperf_init(say_nothing);
	*sideband = *kind;
	sideband->epoll = epoll_create1(EPOLL_CLOEXEC);
	sideband->threads = had(perf_thread_map__new_dummy());
	err = sideband->epoll < 0 ? -errno : open_all(sideband, &host->online);
	if (err)
		sideband_close(sideband);
	else
		*result = sideband;
	return err;
}

int sideband_open_kernel(struct sideband **result, const struct host *host)
{
	return open_general(result, &(struct sideband){.kernel = true}, host);
}

int sideband_open_cgroups(struct sideband **result, const struct host *host)
{
	return open_general(result, &(struct sideband){.cgroups = true}, host);
}

void sideband_close(struct sideband *sideband)
{
	if (!sideband)
		return;
	while (sideband->nr_rings)
		close_ring(sideband, 0);
	if (sideband->epoll >= 0)
		close(sideband->epoll);
	perf_thread_map__put(sideband->threads);
	free(sideband->rings);
	free(sideband);
}

static bool listens_on(const struct sideband *sideband, int cpu)
{
	for (size_t i = 0; i < sideband->nr_rings; i++)
		if (sideband->rings[i]->cpu == cpu)
			return true;
	return false;
}

/* An event of a thread survives when its CPU goes offline; an event of all processes does not. On a CPU that
 * comes online all processes are followed, because children of a process that is followed elsewhere may run
 * there. */
bool sideband_follow(struct sideband *sideband, const struct cpus *online, const struct cpus *gone)
{
	struct perf_thread_map *all = had(perf_thread_map__new_dummy());
	bool opened = false;

	for (size_t i = sideband->nr_rings; i-- > 0;) {
		const struct ring *ring = sideband->rings[i];

		if (ring->of_all && (!cpus_has(online, ring->cpu) || cpus_has(gone, ring->cpu)))
			close_ring(sideband, i);
	}
	for (int cpu = cpus_next(online, 0); cpu >= 0; cpu = cpus_next(online, cpu + 1))
		if (!listens_on(sideband, cpu) && !open_ring(sideband, all, cpu))
			opened = true;
	perf_thread_map__put(all);
	sideband->partial |= opened;
	return opened;
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

/* Where a note's time is: at its end. If several listen on a CPU, whoever they are, the kernel makes the
 * notes of code and of BPF programs longer from one to the next, so that the time is before the end, and
 * bytes that nobody has written follow: perf_event_ksymbol_output() and perf_event_bpf_output(),
 * kernel/events/core.c, leave the header's size as they have changed it. */
static size_t place_of_time(const union perf_event *event)
{
	const char *name = event->ksymbol.name;

	switch (event->header.type) {
	case PERF_RECORD_KSYMBOL:
		return (offsetof(struct perf_record_ksymbol, name) +
			strnlen(name, sizeof(event->ksymbol.name) - 1) + 1 + 7) &
		       ~7UL;
	case PERF_RECORD_BPF_EVENT:
		return sizeof(struct perf_record_bpf_event);
	}
	return event->header.size - sizeof(__u64);
}

/* Returns the time. libperf copies a note that wraps around the ring's end, but no more bytes than its union
 * has. The time of a note with a longer path is then unknown, and `otherwise`, the time of the previous note,
 * is used. */
static __u64 time_of(const union perf_event *event, __u64 otherwise)
{
	size_t at = place_of_time(event);
	__u64 time;

	if (at + sizeof(time) > event->header.size || at + sizeof(time) > sizeof(*event))
		return otherwise;
	memcpy(&time, (const char *)event + at, sizeof(time));
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
	note->data = event->header.misc & PERF_RECORD_MISC_MMAP_DATA;
	if (!(event->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		note->device = makedev(mmap2->maj, mmap2->min);
		note->inode = mmap2->ino;
		return;
	}
	if (mmap2->build_id_size > MAPPED_BUILD_ID_MAX)
		return;
	note->build_id_size = mmap2->build_id_size;
	memcpy(note->build_id, mmap2->build_id, note->build_id_size);
}

/* Fills in the note. Returns false if it is of no interest. */
static bool read_note(struct sideband *sideband, const union perf_event *event, struct sideband_note *note)
{
	switch (event->header.type) {
	case PERF_RECORD_MMAP2:
		mapped(event, note);
		return true;
	case PERF_RECORD_COMM:
		note->kind =
			event->header.misc & PERF_RECORD_MISC_COMM_EXEC ? SIDEBAND_EXECUTED : SIDEBAND_NAMED;
		note->pid = event->comm.pid;
		note->comm = event->comm.comm;
		return true;
	case PERF_RECORD_FORK:
		sideband->forks++;
		note->kind = event->fork.pid == event->fork.ppid ? SIDEBAND_THREADED : SIDEBAND_FORKED;
		note->pid = event->fork.pid;
		note->parent = event->fork.ppid;
		return true;
	case PERF_RECORD_EXIT:
		note->kind = SIDEBAND_EXITED;
		note->pid = event->fork.pid;
		return event->fork.pid == event->fork.tid;
	case PERF_RECORD_CGROUP:
		note->kind = SIDEBAND_CGROUP;
		note->cgroup = event->cgroup.id;
		note->path = event->cgroup.path;
		return true;
	case PERF_RECORD_KSYMBOL:
		note->kind = SIDEBAND_KSYMBOL;
		note->begin = event->ksymbol.addr;
		note->size = event->ksymbol.len;
		note->bpf = event->ksymbol.ksym_type == PERF_RECORD_KSYMBOL_TYPE_BPF;
		note->gone = event->ksymbol.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
		note->symbol = event->ksymbol.name;
		return true;
	case PERF_RECORD_LOST:
		sideband->lost += event->lost.lost;
		return false;
	}
	return false;
}

/* Returns whether the event is a note for the caller. The kernel numbers processes as nhmtap's pid namespace
 * does. A process that is not in it has the number 0, or -1 once it has ended (perf_event_pid_type(),
 * kernel/events/core.c), and can't be told from others. */
static bool note_of(struct sideband *sideband, const union perf_event *event, struct sideband_note *note)
{
	return read_note(sideband, event, note) && (note->pid > 0 || note->kind >= SIDEBAND_CGROUP);
}

/* The longest note: of a mapping, with its path. */
#define NOTE_MOST (PATH_MAX + 256)

/*
 * The kernel reports that a note found no room only with the next one that finds some. There may be such a
 * note if so little room is left; one note may have been consumed since.
 */
static bool is_full(const struct ring *ring)
{
	return libperf_unread(ring->map) > RING_PAGES * 4096 - 2 * NOTE_MOST;
}

/* Holds the ring's oldest note, if it has one. Does not call perf_mmap__read_done(), which would skip notes
 * that came since the last look. */
static bool hold_note(struct ring *ring)
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

static struct ring *oldest_ring(struct sideband *sideband, __u64 before)
{
	struct ring *found = NULL;

	for (size_t i = 0; i < sideband->nr_rings; i++) {
		struct ring *ring = sideband->rings[i];
		bool held = hold_note(ring);

		sideband->partial |= is_full(ring);
		if (!held || ring->time >= before || (found && found->time <= ring->time))
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
	while ((ring = oldest_ring(sideband, before))) {
		*note = (struct sideband_note){.time = ring->time};
		if (note_of(sideband, ring->event, note)) {
			sideband->handed_out = ring;
			return true;
		}
		let_go(ring);
	}
	return false;
}

bool sideband_has_more(const struct sideband *sideband)
{
	for (size_t i = 0; i < sideband->nr_rings; i++)
		if (sideband->rings[i]->event)
			return true;
	return false;
}

__u64 sideband_lost(const struct sideband *sideband)
{
	return sideband->lost;
}

bool sideband_forks(const struct sideband *sideband, __u64 *forks)
{
	*forks = sideband->forks + sideband->lost;
	return !sideband->partial;
}
