/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions that libperf's public interface lacks. */
#pragma once

#include <stddef.h>

struct perf_evsel;
struct perf_mmap;

/* The descriptor of an opened event for the cpu_index-th CPU and the thread_index-th thread of its maps, or
 * -1. It stays libperf's. */
int libperf_fd(struct perf_evsel *evsel, int cpu_index, int thread_index);

/* Makes an event that is not yet open a member of the leader's group; otherwise an event leads its own.
 * libperf does this for whole lists only. */
void libperf_follow(struct perf_evsel *evsel, struct perf_evsel *leader);

/* Lets go of the maps that an event has got from its list, before the list is deleted: libperf 6.1 leaves
 * them. */
void libperf_release_maps(struct perf_evsel *evsel);

/* The bytes in a ring that were not consumed yet; 0 if it is not mapped. */
size_t libperf_unread(struct perf_mmap *map);
