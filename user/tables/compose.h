/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events of a CPU's table as one writes them: by name, by several umasks of one event, or composed
 * of an off-core request and a response.
 *
 *     INST_RETIRED.ANY_P                      a row; ':' is as good as '.'
 *     MEM_LOAD_RETIRED:L1D_HIT|L2_HIT         rows whose umasks are combined
 *     MEM_LOAD_RETIRED:L1D_HIT:L2_HIT         the same, as libpfm4 writes it
 *     OFFCORE_RESPONSE_0:DMND_DATA_RD|PF_DATA_RD:LOCAL_DRAM|REMOTE_DRAM
 *     OFFCORE_RESPONSE_0:LOCAL_DRAM           requests and responses in any order; a kind that is left out
 *                                             is taken whole, as libpfm4 does it
 */
#ifndef NHMTAP_COMPOSE_H
#define NHMTAP_COMPOSE_H

#include <linux/types.h>

#include "tables/known_event.h"
#include "refusal.h"

struct composed {
	__u64 config, config1;
	char description[200];
	char note[400];			 /* what was added to the name, or what libpfm4 means by it instead */
	const struct known_event *known; /* the row, or the first of several; NULL for an off-core response */
	size_t at;			 /* where in the name it is wrong, if it is */
};

/* Returns 1 if it is an event of the table, 0 if not, -1 if it begins like one and is wrong, with
 * the refusal filled in. cpu may be NULL. */
int compose_event(const struct cpu_events *cpu, const char *name, struct composed *composed,
		  struct refusal *refusal);

/* The same of a name that is given its umask as a number: the name's event code with this umask, and an
 * off-core register with this value. */
int compose_umask(const struct cpu_events *cpu, const char *name, __u64 umask, struct composed *composed,
		  struct refusal *refusal);

#endif
