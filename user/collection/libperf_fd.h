/* SPDX-License-Identifier: GPL-2.0-only */
/* What libperf's public interface lacks. */
#ifndef NHMTAP_LIBPERF_FD_H
#define NHMTAP_LIBPERF_FD_H

struct perf_evsel;

/* The descriptor of an opened event on the cpu_index-th CPU and thread_index-th thread of its maps,
 * or -1. libperf keeps it. */
int libperf_fd(struct perf_evsel *evsel, int cpu_index, int thread_index);

/* Makes an event, before it is opened, a member of the group that leader leads: an event is its own
 * leader otherwise. libperf does it for whole lists only. */
void libperf_follow(struct perf_evsel *evsel, struct perf_evsel *leader);

#endif
