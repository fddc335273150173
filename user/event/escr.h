/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of units whose counters share ESCRs (NetBurst): their own terms, counters and registers. */
#ifndef NHMTAP_ESCR_H
#define NHMTAP_ESCR_H

#include "event/event.h"
#include "event/registers.h"

/*
 * Terms beside those of fields: overflow=N has the counter overflow after N occurrences, metric=NAME marks
 * micro-operations for the kind's event. Returns 1, 0 if the term is neither, or -1 with the refusal.
 */
int escr_term(struct event *event, const char *term, size_t length, struct refusal *refusal);

/* Gives an event that stands alone the first counter of its first ESCR. */
void escr_begin(struct event *event);

/* What the terms together don't allow: nothing is selected. Returns 0, or -1 with the refusal. */
int escr_check(const struct event *event, struct refusal *refusal);

/* The event before it that starts its counter, if it cascades; NULL if there is none. */
const struct event *escr_starter(const struct events *events, const struct event *event);

/* Gives each event of such a unit a counter and an ESCR of its own, where a cascade needs it those of a
 * counter that starts another. In the order of the list, who finds none has unit_counter -1. */
void escr_place(struct events *events);

/* What the event's registers are to hold, while its counter stands still and while it counts. */
__u32 escr_cccr(const struct event *event, bool counts);
/* Where its count begins. */
__u64 escr_start(const struct event *event);

/* What is written to count the event, in that order. */
void escr_registers(const struct event *event, struct registers *registers);

#endif
