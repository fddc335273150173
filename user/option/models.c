// SPDX-License-Identifier: GPL-2.0-only
#include "option/models.h"

#include "base/array.h"

/* machine/src/nhm/nhm_models.inc describes the columns. */
#define NHM_DESIGN(...)
#define NHM_MODEL(model, ...) #model,
const char *const machine_models[] = {
#include "machine/src/nhm/nhm_models.inc"
	NULL};
#undef NHM_MODEL

#define NHM_MODEL(model, signature, design, events, missing, offcore, local, remote, forward, source, bits,  \
		  gap, microcode, brand)                                                                     \
	brand,
const char *const machine_brands[] = {
#include "machine/src/nhm/nhm_models.inc"
};
#undef NHM_MODEL

#define NHM_MODEL(model, signature, ...) signature,
static const unsigned int signatures[] = {
#include "machine/src/nhm/nhm_models.inc"
};

#undef NHM_MODEL

enum {
#include "machine/src/nhm/nhm_sets.inc"
};

#define NHM_MODEL(model, signature, design, events, ...) events,
static const unsigned char sets[] = {
#include "machine/src/nhm/nhm_models.inc"
};

#define NHM_EVENT(code, umask, mode, counted, name)	       {OF_ALL, code, umask, name},
#define NHM_EVENT_OF(models, code, umask, mode, counted, name) {models, code, umask, name},
const struct machine_event machine_events[] = {
#include "machine/src/nhm/nhm_events.inc"
};
const size_t nr_machine_events = ARRAY_SIZE(machine_events);

bool machine_counts(size_t i, const struct machine_event *event)
{
	return sets[i] & event->models;
}

/* SDM, CPUID: a display family and model have the extended ones added. */
const char *machine_model_of(unsigned int family, unsigned int model)
{
	for (size_t i = 0; machine_models[i]; i++) {
		unsigned int base = signatures[i] >> 8 & 0xf;

		if (base + (base == 15 ? signatures[i] >> 20 & 0xff : 0) == family &&
		    ((signatures[i] >> 4 & 0xf) | (signatures[i] >> 12 & 0xf0)) == model)
			return machine_models[i];
	}
	return NULL;
}
