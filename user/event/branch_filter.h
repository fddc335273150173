/* SPDX-License-Identifier: GPL-2.0-only */
/* Which branches the LBR is to record: perf record's -j, perf_event_attr.branch_sample_type. */
#ifndef NHMTAP_BRANCH_FILTER_H
#define NHMTAP_BRANCH_FILTER_H

#include "event/event.h"
#include "refusal.h"

/*
 * Sets the event's branch_sample_type, and PERF_SAMPLE_BRANCH_STACK in its sample_type, from kinds
 * of branches and sides with ',' between them: "any_call,u". Without a side it is the event's own.
 * Returns 0, or -1 with the refusal: an unknown word, a kind that the CPU's table says it has not (cpu may
 * be NULL), or what the kernel refuses beside precise_ip 2.
 */
int branch_filter_set(struct event *event, const char *text, const struct cpu_events *cpu,
		      struct refusal *refusal);

/* The bits of branch_sample_type that one of perf's words stands for; 0 if it is none. */
__u64 branch_kind_bits(const char *word);

/*
 * The sides that a branch trace (BTS) is asked for, as an event's modifiers: "u", "k" or "" for both.
 * It has all kinds of branches, so text (NULL: all) may name none but "any". Returns 0, or -1 with the
 * refusal.
 */
int branch_filter_sides(const char *text, char sides[4], struct refusal *refusal);

#endif
