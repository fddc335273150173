/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of counters that Linux has no driver for: UNIT/KIND,FIELD=VALUE,…/. */
#pragma once

#include "event/event.h"
#include "event/registers.h"

/*
 * Makes an event from the terms between the slashes: the kind comes first, then fields. A field has names of
 * values, joined by '+', or a number; a field without a value is 1. Sets attr.config to the value of the
 * counter's register. `two_threads`: the CPU's cores have two threads, so that fields which select one have
 * their usual_smt value by default. Returns 0, or -1 with the refusal, and *at is the offset of the term that
 * is refused.
 */
int unit_event(struct event *event, const struct known_unit *unit, bool two_threads, const char *terms,
	       size_t *at, struct refusal *refusal);

/* The event's counter: the name and address of its register. */
const struct unit_number *unit_counter_of(const struct event *event);

/* A register that an event occupies. The bits in `mask` keep the value that was written as long as the
 * register belongs to this event. */
struct own_register {
	__u32 msr;
	__u64 value, mask;
};

#define OWN_REGISTERS 5

/* Lists the registers that an event occupies, with their values while its counter is stopped. The first shows
 * which event the counter belongs to, the last has the count. Returns their number. */
size_t unit_own_registers(const struct event *event, struct own_register *list);

/* The register that shows whether a counter is in use. `which` is the counter's number. The result has no
 * name if there is no such counter. */
struct unit_number unit_register(const struct known_unit *unit, size_t which);
bool unit_in_use(const struct known_unit *unit, __u64 value);

/* Whether the register belongs to the unit. */
bool unit_has(const struct known_unit *unit, __u32 msr);

/* Assigns a counter to each event of a unit, as long as there is one that can count it. */
void units_place(struct events *events);

/* The register writes that count the event, in their order. With a control: the control freezes, the
 * counter's register is written, the control resets the count, then lets it count. With ESCRs: the CCCR, the
 * ESCR, the initial count, and the CCCR with the counter enabled. */
void unit_registers(const struct event *event, struct registers *registers);

/* The value to write to the unit's control in order to give a command, by the number of the command's bit, to
 * these counters. */
__u64 unit_command(const struct known_unit *unit, int command, __u32 counters);
