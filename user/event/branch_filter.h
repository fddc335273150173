/* SPDX-License-Identifier: GPL-2.0-only */
/* Which branches the LBR is to record: perf record's -j, perf_event_attr.branch_sample_type. */
#ifndef NHMTAP_BRANCH_FILTER_H
#define NHMTAP_BRANCH_FILTER_H

#include "event/event.h"
#include "refusal.h"

/*
 * Sets the event's branch_sample_type, and PERF_SAMPLE_BRANCH_STACK in its sample_type, from kinds
 * of branches and sides with ',' between them: "any_call,u". Without a side it is the event's own.
 * Returns 0, or -1 with the refusal: an unknown word, or what the kernel refuses beside precise_ip 2.
 */
int branch_filter_set(struct event *event, const char *text, struct refusal *refusal);

/*
 * The sides that a branch trace (BTS) is asked for, as an event's modifiers: "u", "k" or "" for both.
 * It has all kinds of branches, so text (NULL: all) may name none but "any". Returns 0, or -1 with the
 * refusal.
 */
int branch_filter_sides(const char *text, char sides[4], struct refusal *refusal);

#endif
