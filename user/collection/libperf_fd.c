// SPDX-License-Identifier: GPL-2.0-only
/* The only file that uses libperf's internal headers. */
#ifdef LIBPERF_TREE
#include <stddef.h>
#include <linux/types.h>
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
#endif
#include <internal/evsel.h>
#include <internal/xyarray.h>

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
