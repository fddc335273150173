/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of counters that Linux has no driver for: UNIT/KIND,FIELD=VALUE,…/. */
#ifndef NHMTAP_UNIT_H
#define NHMTAP_UNIT_H

#include "event/event.h"
#include "event/registers.h"

/*
 * Makes the event of the terms between the slashes: the kind, then fields with the names of their values,
 * which
 * '+' joins, or with a number; a field without a value is 1. attr.config becomes what the counter's register
 * gets. Returns 0, or -1 with the refusal, and *at the place in the terms that is refused.
 */
int unit_event(struct event *event, const struct known_unit *unit, const char *terms, size_t *at,
	       struct refusal *refusal);

/* The register of the event's counter, and its bit's number among the control's. */
const struct unit_number *unit_counter_of(const struct event *event);

/* Gives each event of a unit a counter, as long as its kind has some. */
void units_place(struct events *events);

/* What is written to count the event, in the order of writing: the control freezes, the counter's register,
 * the control resets, and lets it count. */
void unit_registers(const struct event *event, struct registers *registers);

/* The value of the control that gives its command, by the command's bit, to these counters. */
__u64 unit_command(const struct known_unit *unit, int command, __u32 counters);

#endif
