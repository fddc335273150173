// SPDX-License-Identifier: GPL-2.0-only
/* The only file that uses libperf's internal headers. */
#ifdef LIBPERF_TREE
#include <stddef.h>
#include <linux/perf_event.h>
#include <linux/types.h>
#include <internal/mmap.h>
#else
/* libperf's installed internal headers need types of the kernel tree; these have the same layout. */
#include <sys/types.h>
#include <linux/perf_event.h>
struct list_head {
	struct list_head *next, *prev;
};
struct hlist_node {
	struct hlist_node *next, **pprev;
};
typedef __u64 u64;
typedef __u32 u32;
struct perf_mmap {
	void *base; /* only this member is used */
};
#endif
#include <internal/evsel.h>
#include <internal/xyarray.h>
#include <perf/cpumap.h>
#include <perf/threadmap.h>

#include "libperf_fd.h"

int libperf_fd(struct perf_evsel *evsel, int cpu_index, int thread_index)
{
	int *fd = evsel->fd ? xyarray__entry(evsel->fd, cpu_index, thread_index) : NULL;

	return fd ? *fd : -1;
}

void libperf_follow(struct perf_evsel *evsel, struct perf_evsel *leader)
{
	evsel->leader = leader;
}

void libperf_release_maps(struct perf_evsel *evsel)
{
	perf_cpu_map__put(evsel->cpus);
	perf_thread_map__put(evsel->threads);
	evsel->cpus = NULL;
	evsel->threads = NULL;
}

size_t libperf_unread(struct perf_mmap *map)
{
	const struct perf_event_mmap_page *page = map->base;

	return page ? __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) - page->data_tail : 0;
}
