/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include "output/output.h"

/* The attributes of a resource, {name: value}: those of the stream's start record, the ones that
 * OpenTelemetry requires of every resource where the user has not set them, and in place of those of the same
 * names what a process has published (`context`; NULL: nothing), without those that describe
 * nhmtap's own process. The caller owns the object. */
json_t *otlp_resource(const struct stream *stream, const json_t *context);

/* What processes have published about themselves, from process_context records. Starts as zeros. */
struct otlp_contexts {
	json_t *by_pid; /* {pid: attributes}; NULL: none */
	json_t *gone;	/* {pid: when it was seen to publish nothing any more, CLOCK_MONOTONIC in ns} */
	json_int_t target_pid; /* the process that is all that is measured; 0: it isn't one, or has published
				  none */
};

/* Takes a process_context record. Returns whether the record was one. */
bool otlp_take_context(struct otlp_contexts *contexts, const json_t *record);
void otlp_contexts_release(struct otlp_contexts *contexts);

/* The attributes for what is of a process of this number, 0: of any, and of an interval that began at `since`
 * (began_ns of a stream): those that it has published, also if it has ended since then, or, if the number
 * may be the target's, the target's. NULL: none. Borrowed until the next record of a process. */
const json_t *otlp_context_of(const struct otlp_contexts *contexts, json_int_t pid, __u64 since);
