/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A branch trace (BTS) as it comes out of the kernel: the buffers that the hardware writes to, one for
 * each thread that is traced, and what the kernel says about them. libperf maps rings of records, but
 * not the AUX area beside them that a trace needs, so both are mapped and read here.
 */
#ifndef NHMTAP_TRACE_H
#define NHMTAP_TRACE_H

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

struct trace;

/*
 * Maps a buffer for each place of an event of the intel_bts PMU: of 4 MiB, or of the most that the
 * kernel gives. It is never overwritten: where it is full, the trace stops. The caller owns *trace up
 * to trace_close(), which is to come before counters_close(). Returns 0 or -errno.
 */
int trace_open(struct trace **trace, const struct counters *counters, size_t event);
void trace_close(struct trace *trace);

/* A descriptor that is readable when there is much to be read, or a buffer is full. */
int trace_descriptor(const struct trace *trace);

/* Bytes of one buffer, and those that all have been given so far. */
size_t trace_buffer_size(const struct trace *trace);
__u64 trace_bytes(const struct trace *trace);

/* A thread, and branches that it took one after the other, valid during the call. With none, branches
 * are missing between those before and those that follow. */
struct traced {
	pid_t pid, tid;
	size_t place; /* of the event: see counters_places() */
	const struct trace_record *records;
	size_t nr;
};

/* Reads all that there is and gives the buffers free again. */
void trace_read(struct trace *trace, void (*take)(void *context, const struct traced *traced), void *context);

/* Lets threads go on being traced whose trace the kernel has stopped. */
void trace_resume(struct trace *trace);

/* What is missing, since the beginning. */
struct trace_loss {
	__u64 buffer_full;  /* times that a buffer was full: what came then, up to its reading, is missing */
	__u64 notices_lost; /* notices of the kernel, each of a piece of the trace, that found no room */
};
struct trace_loss trace_loss(const struct trace *trace);

#endif
