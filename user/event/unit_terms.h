/* SPDX-License-Identifier: GPL-2.0-only */
/* Terms and registers of units, as events with and without ESCRs have them. */
#pragma once

#include "base/refusal.h"
#include "event/event.h"
#include "event/registers.h"

/* Starts the refusal of a term: fills in what was asked for. Returns -1. */
int unit_refuse_term(const struct event *event, const char *term, size_t length, struct refusal *refusal);

/* Adds a field, with its value, to the fields of a register that explain shows. They are kept in the order of
 * bits. */
void unit_add_field(struct register_value *reg, const char *name, const char *meaning, int low, int high);

/* The name of a field's value; if it has none, the description of the field. */
const char *unit_meaning(const struct unit_field *field, __u64 value);
