/* SPDX-License-Identifier: GPL-2.0-only */
/* The one thing that libperf's public interface lacks: an event's file descriptor. */
#ifndef NHMTAP_LIBPERF_FD_H
#define NHMTAP_LIBPERF_FD_H

struct perf_evsel;

/* The descriptor of an opened event on the cpu_index-th CPU and thread_index-th thread of its maps,
 * or -1. libperf keeps it. */
int libperf_fd(struct perf_evsel *evsel, int cpu_index, int thread_index);

#endif
