/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The other source of counts: counters that Linux has no driver for, programmed and read through
 * /dev/cpu/N/msr as the CPU's table describes them (struct known_unit).
 *
 * Nobody arbitrates these registers. So a unit is taken only if none of its counters is in use. The
 * registers' old contents are written to a file first and restored at the end; if this process can't restore
 * them, the next one that takes registers does. No register is written that is not in the table.
 *
 * Counts are not read by RDPMC, where CR4.PCE would allow that: it gives a count without what the register
 * selects, so that another program's would be taken for this one's.
 */
#ifndef NHMTAP_MSR_COUNTERS_H
#define NHMTAP_MSR_COUNTERS_H

#include <linux/types.h>

#include "count.h"
#include "host/host.h"
#include "plan/plan.h"
#include "refusal.h"

struct msr_counters;

/* What keeps this process from writing registers at all: the driver of /dev/cpu/N/msr, rights, lockdown,
 * msr.allow_writes. Writes nothing. Returns 0, or -1 with the refusal. */
int msr_writable(struct host *host, struct refusal *refusal);

/* Whether the unit's counters could be taken on these CPUs, one of each thing that has them. Writes nothing.
 * Returns 0, or -1 with the refusal: one can't be read, or is in use, or was left by a process that is gone.
 */
int msr_unit_free(struct host *host, const struct known_unit *unit, const struct cpus *cpus,
		  struct refusal *refusal);

/*
 * Takes the counters of the plan's events of units, on those CPUs of its target that count for the others,
 * and programs them to stand still. The caller owns *counters up to msr_counters_close(), which puts the
 * registers back; there are none, NULL, where the plan has no such events. Returns 0, or -1 with the refusal
 * and all registers as they were.
 */
int msr_counters_open(struct msr_counters **counters, const struct plan *plan, struct host *host,
		      struct refusal *refusal);
void msr_counters_close(struct msr_counters *counters);

/* Lets all of them count, each CPU's at the same moment, or stops them. Returns 0 or -errno. */
int msr_counters_switch(struct msr_counters *counters, bool on);

/* What an event of the plan has counted on a CPU; zeros where it has no counter there. Returns 0, or -errno:
 * count is then what it was before. */
int msr_counters_read(struct msr_counters *counters, size_t event, int cpu, struct count *count);

/* All of them have to be read so often, in ns, that none wraps unseen. */
__u64 msr_counters_pace(const struct msr_counters *counters);

/* What has made an event's count end before its time, in words, once for each of its registers; NULL: nothing
 * more. */
const char *msr_counters_lost(struct msr_counters *counters, size_t event);

/* Puts back what the registers of this process held. For signal handlers and exits: it allocates nothing. */
void msr_counters_put_back(void);

#endif
