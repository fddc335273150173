/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A branch trace (BTS) as it comes from the kernel: the buffers that the hardware writes, one for each traced
 * thread, and the kernel's notices about them. libperf maps rings of records, but not the AUX area that a
 * trace needs, so both are mapped and read here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include <sys/types.h>

#include "collection/counters.h"

/* A branch as the hardware writes it: SDM volume 3, "64-bit branch trace record format". */
struct trace_record {
	__u64 from, to;
	__u64 flags;
};
#define TRACE_PREDICTED (1 << 4)

static inline bool trace_missed(const struct trace_record *record)
{
	return !(record->flags & TRACE_PREDICTED);
}

struct trace;

/*
 * Maps a buffer for each place of an event of the intel_bts PMU: 4 MiB, or as much as the kernel allows. It
 * is never overwritten: when it is full, the trace stops. The caller owns *trace up to trace_close(), which
 * must be called before counters_close(). Returns 0 or -errno.
 */
int trace_open(struct trace **trace, const struct counters *counters, size_t event);
void trace_close(struct trace *trace);

/* A descriptor that becomes readable when there is much to read, or a buffer is full. */
int trace_descriptor(const struct trace *trace);

/* The bytes of one buffer, and the bytes of all traces so far. */
size_t trace_buffer_size(const struct trace *trace);
__u64 trace_bytes(const struct trace *trace);

/* A thread, and branches that it took one after the other, valid during the call. nr = 0: branches are
 * missing between the previous ones and the next, and `cause` says why: a member of struct trace_loss. */
struct traced {
	pid_t pid, tid;
	size_t place; /* of the event: see counters_places() */
	const struct trace_record *records;
	size_t nr;
	const char *cause; /* constant */
};

/* Reads all that there is, calling `take` for each piece, and frees the buffers for new branches. */
void trace_read(struct trace *trace, void (*take)(void *context, const struct traced *traced), void *context);

/* Restarts the trace of threads whose trace the kernel has stopped. */
void trace_resume(struct trace *trace);

/* What is missing since the beginning. */
struct trace_loss {
	__u64 buffer_full;  /* times that a buffer was full: branches from then up to its reading are missing
			     */
	__u64 notices_lost; /* notices of the kernel that found no room; each stands for a piece of the trace
			     */
};
struct trace_loss trace_loss(const struct trace *trace);
