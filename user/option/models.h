/* SPDX-License-Identifier: GPL-2.0-only */
/* The models of the emulated machine, from the table that it is built with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Names ("ep"), terminated by NULL; the first one is the default. */
extern const char *const machine_models[];

/* The processor's name of the i-th model, as CPUID has it. */
extern const char *const machine_brands[];

/* An event that the emulated machine counts, by its name in Intel's list. */
struct machine_event {
	unsigned char models, code, umask; /* models: sets of nhm_sets.inc */
	const char *name;
};
extern const struct machine_event machine_events[];
extern const size_t nr_machine_events;

/* Whether the i-th model counts an event. NetBurst's events aren't in the table. */
bool machine_counts(size_t i, const struct machine_event *event);

/* The name of the first model whose processor is of this family and model, as CPUID has them; NULL if none
 * is. */
const char *machine_model_of(unsigned int family, unsigned int model);
