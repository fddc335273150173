/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events of a CPU's table in the ways that a user can write them: by name, by several umasks of one event, or
 * composed of an off-core request and a response.
 *
 *     INST_RETIRED.ANY_P                      a row; ':' is as good as '.'
 *     MEM_LOAD_RETIRED:L1D_HIT|L2_HIT         rows whose umasks are combined
 *     MEM_LOAD_RETIRED:L1D_HIT:L2_HIT         the same, as libpfm4 writes it
 *     L2_LD:BOTH_CORES:I_STATE                rows about different fields of the umask, which limit each
 * other OFFCORE_RESPONSE_0:DMND_DATA_RD|PF_DATA_RD:LOCAL_DRAM|REMOTE_DRAM OFFCORE_RESPONSE_0:LOCAL_DRAM
 * requests and responses in any order; a kind that is left out is taken whole, as libpfm4 does it: requests,
 * responses, the snoops of a supplier
 */
#pragma once

#include <linux/types.h>

#include "base/refusal.h"
#include "tables/known_event.h"

struct composed {
	__u64 config, config1;
	char description[200];
	char note[400]; /* what was added to the name, or how libpfm4 encodes the name instead */
	const struct known_event *known; /* the row, or the first of several; NULL for an off-core response */
	size_t at;			 /* offset of the fault in the name, if there is one */
};

/* Looks up an event or composes it. `cpu` may be NULL. Returns 1 if it is an event of the table, 0 if it is
 * not, or -1 with the refusal if it begins like one but is wrong. */
int compose_event(const struct cpu_events *cpu, const char *name, struct composed *composed,
		  struct refusal *refusal);

/* The same for a name with a umask as a number: the event code of the name with this umask. If the name is an
 * off-core register, the number is its value. */
int compose_umask(const struct cpu_events *cpu, const char *name, __u64 umask, struct composed *composed,
		  struct refusal *refusal);
