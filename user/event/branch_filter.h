/* SPDX-License-Identifier: GPL-2.0-only */
/* The filter of branches that the LBR records: perf record's -j, perf_event_attr.branch_sample_type. */
#pragma once

#include "base/refusal.h"
#include "event/event.h"

/*
 * Sets the event's branch_sample_type, and PERF_SAMPLE_BRANCH_STACK in its sample_type. `text` is a list of
 * kinds of branches and sides, separated by ',': "any_call,u". If it names no side, the event's own sides
 * apply. `cpu` may be NULL. Returns 0, or -1 with the refusal: for an unknown word, for a kind that the CPU
 * lacks according to its table, or for what the kernel refuses together with precise_ip 2.
 */
int branch_filter_set(struct event *event, const char *text, const struct cpu_events *cpu,
		      struct refusal *refusal);

/* The bits of branch_sample_type for one of perf's words; 0 if the word is unknown. */
__u64 branch_kind_bits(const char *word);

/*
 * Writes the sides of a branch trace (BTS), in the form of an event's modifiers: "u", "k", or "" for both. A
 * branch trace has all kinds of branches, so the only kind that `text` may name is "any". `text` may be NULL:
 * all. Returns 0, or -1 with the refusal.
 */
int branch_filter_sides(const char *text, char sides[4], struct refusal *refusal);
