// SPDX-License-Identifier: GPL-2.0-only
#include "option/models.h"

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
