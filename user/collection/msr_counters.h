/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The second source of counts: counters without a driver in Linux, programmed and read through /dev/cpu/N/msr
 * as the CPU's table describes them (struct known_unit).
 *
 * Nothing arbitrates the use of these registers. So a unit is taken only if none of its counters is in use.
 * The old contents of the registers are first written to a file, and restored at the end; if this process
 * fails to restore them, the next one that takes registers does. Only registers of the table are written.
 *
 * Counts are not read by RDPMC, even if CR4.PCE allows it: RDPMC gives the count without the register that
 * selects the event, so a count of another program would not be recognized.
 */
#pragma once

#include <linux/types.h>

#include "base/count.h"
#include "base/refusal.h"
#include "host/host.h"
#include "plan/plan.h"

struct msr_counters;

/* Whether this process may write registers at all: checks the driver of /dev/cpu/N/msr, permissions, lockdown
 * and msr.allow_writes. Writes nothing. Returns 0, or -1 with the refusal. */
int msr_writable(struct host *host, struct refusal *refusal);

/* Whether the unit's counters could be taken on these CPUs, one for each part of the machine that has the
 * unit. Writes nothing. Returns 0, or -1 with the refusal: a register can't be read, is in use, or was left
 * behind by a process that has ended. */
int msr_unit_free(struct host *host, const struct known_unit *unit, const struct cpus *cpus,
		  struct refusal *refusal);

/*
 * Takes and programs the counters for those of the plan's events that are counted by registers, on each CPU
 * of the target that stands for the CPUs that share its counters. They do not count yet. The caller owns
 * *counters up to msr_counters_close(), which restores the registers; *counters is NULL if the plan has no
 * such events. Returns 0, or -1 with the refusal and all registers as they were.
 */
int msr_counters_open(struct msr_counters **counters, const struct plan *plan, struct host *host,
		      struct refusal *refusal);
void msr_counters_close(struct msr_counters *counters);

/* Starts all counters, those of one CPU at the same moment, or stops them. Returns 0 or -errno. */
int msr_counters_switch(struct msr_counters *counters, bool on);

/* Reads the count of an event of the plan on a CPU; zeros if it has no counter there. Returns 0, or -errno
 * with *count unchanged. */
int msr_counters_read(struct msr_counters *counters, size_t event, int cpu, struct count *count);

/* The time in ns within which all counters must be read, so that none wraps unnoticed. */
__u64 msr_counters_pace(const struct msr_counters *counters);

/* The reason why an event has stopped being counted early, once for each of its registers, as a constant
 * text; NULL if there is no further reason to report. */
const char *msr_counters_lost(struct msr_counters *counters, size_t event);

/* Restores the registers that this process has taken. May be called from signal handlers and at exit: it
 * allocates nothing. */
void msr_counters_put_back(void);
