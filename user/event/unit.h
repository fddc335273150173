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
 * gets; two_threads: cores have two, whose sides some fields tell apart. Returns 0, or -1 with the refusal,
 * and *at the place in the terms that is refused.
 */
int unit_event(struct event *event, const struct known_unit *unit, bool two_threads, const char *terms,
	       size_t *at, struct refusal *refusal);

/* The register of the event's counter, and its bit's number among the control's. */
const struct unit_number *unit_counter_of(const struct event *event);

/* A register that an event takes, with the bits (mask) that stay as they are written while it is this
 * event's.
 */
struct own_register {
	__u32 msr;
	__u64 value, mask;
};

#define OWN_REGISTERS 5

/* Those of an event whose counter stands still: first the one that says whose it is, last the one that has
 * the count. Returns how many. */
size_t unit_own_registers(const struct event *event, struct own_register *list);

/* The register that says whether a counter is in use, by the counter's number; without a name behind the
 * last.
 */
struct unit_number unit_register(const struct known_unit *unit, size_t which);
bool unit_in_use(const struct known_unit *unit, __u64 value);

/* Whether the register is one of the unit's. */
bool unit_has(const struct known_unit *unit, __u32 msr);

/* Gives each event of a unit a counter, as long as there is one that can count it. */
void units_place(struct events *events);

/* What is written to count the event, in the order of writing: the control freezes, the counter's register,
 * the control resets, and lets it count. With
 * ESCRs: the CCCR, the ESCR, where the count begins, and the CCCR with the counter enabled. */
void unit_registers(const struct event *event, struct registers *registers);

/* Begins the refusal of a term. Returns -1. */
int unit_refuse_term(const struct event *event, const char *term, size_t length, struct refusal *refusal);

/* Adds a field with its value to those of a register that explain shows, in the order of bits. */
void unit_add_field(struct register_value *reg, const char *name, const char *meaning, int low, int high);

/* What a field's value is called, or else what the field is about. */
const char *unit_meaning(const struct unit_field *field, __u64 value);

/* The value of the control that gives its command, by the command's bit, to these counters. */
__u64 unit_command(const struct known_unit *unit, int command, __u32 counters);

#endif
