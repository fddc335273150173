/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of units whose counters share ESCRs (NetBurst): their terms, counters and registers. */
#pragma once

#include "event/event.h"
#include "event/registers.h"

/*
 * Handles the terms that do not set a field: overflow=N makes the counter overflow after N occurrences,
 * metric=NAME tags micro-operations for this kind of event. Returns 1, 0 if it is another term, or -1 with
 * the refusal.
 */
int escr_term(struct event *event, const char *term, size_t length, struct refusal *refusal);

/* Gives the event the first usable counter of its first ESCR, as if it were the only event. */
void escr_begin(struct event *event);

/* Refuses terms that together select nothing. Returns 0, or -1 with the refusal. */
int escr_check(const struct event *event, struct refusal *refusal);

/* The event that starts this event's counter if it cascades: the nearest one before it with overflow=. NULL
 * if there is none. */
const struct event *escr_starter(const struct events *events, const struct event *event);

/* Assigns a counter and an ESCR to each event of such a unit. An event that cascades gets a counter that the
 * counter of its starter can start. Events that come first in the list have priority; one that finds no
 * counter gets unit_counter -1. */
void escr_place(struct events *events);

/* The value of the event's CCCR while its counter is stopped (`counts` is false) or counts. */
__u32 escr_cccr(const struct event *event, bool counts);
/* The initial value of its counter. */
__u64 escr_start(const struct event *event);

/* The registers that are written to count the event, in this order. */
void escr_registers(const struct event *event, struct registers *registers);
