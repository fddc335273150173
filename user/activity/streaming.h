/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stream of an event's samples: each one as a `sample` record, in the order of time over all CPUs, while
 * the event's table counts them too. Samples that the kernel's program had to overwrite are told by `lost`
 * records at their place in the stream.
 *
 * A trace's branches go the same way, as `traced` records in the order of their thread.
 *
 * A sample whose code is to be named waits until its file has been read, and so do those behind it, at most
 * STREAM_WAIT_NS.
 */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "activity/activity.h"
#include "aggregation/aggregation.h"
#include "collection/trace.h"

/* The period for reading the rings, so that samples are written soon. */
#define STREAM_NS 20000000

#define STREAM_WAIT_NS 1000000000ULL

/* Names of fields that are no keys of a program. The table for keys_choose() has them and the names of code.
 */
extern const struct code_key stream_fields[];

struct streaming;

/* `shows`: a list of what samples have beside the keys; of "addr", "latency", "period", "source",
 * "container", "phys", "stack", "branches", "regs", and names of code. NULL: none. The caller owns the
 * result. */
struct streaming *streaming_new(struct activity *activity, const char *shows);
void streaming_release(struct streaming *streaming);

/* Adds an event, whose aggregation is borrowed. `share`: of the rings of all events. */
void streaming_add(struct streaming *streaming, const struct event *event, struct aggregation *aggregation,
		   const struct ring_share *share);

/* The same for the event of a trace, which must be the only one. */
void streaming_add_trace(struct streaming *streaming, const struct event *event);

/* Writes a piece of a trace, or that branches are missing there. `first`: the number of its first branch.
 * Returns 0 or -errno of the streams. */
int streaming_branches(struct streaming *streaming, const struct traced *traced, __u64 first);

/* Writes the samples that were taken before this time (CLOCK_MONOTONIC, ns). `all`: also those whose code has
 * no name yet. Returns 0 or -errno of the streams. */
int streaming_drain(struct streaming *streaming, __u64 before, bool all);

/* For the end record. A new reference. */
json_t *streaming_value(const struct streaming *streaming);
