/* SPDX-License-Identifier: GPL-2.0-only */
/* The raw encoding that the kernel's driver uses for an event, before it applies its rules. */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

#include "event/event.h"
#include "tables/config.h"
#include "tables/names.h"

/* The raw event that is counted. For perf's generic events the kernel chooses it. */
struct encoding {
	__u64 config, config1;
	const char *note; /* when the kernel chooses otherwise, by the table; or NULL */
	char source[192]; /* where the encoding is from */
};

/* Returns false if the attr is not an event of the core's PMU, or if the kernel has no encoding for it. The
 * host must have a table of its CPU. */
bool encoding_of(const struct perf_event_attr *attr, struct host *host, struct encoding *encoding);

/* Whether two events count the same, whatever they are called: on the same sides, by the same raw encoding,
 * or by the same attr where the host has no table, or an event no encoding. Precision and periods do not
 * matter. */
bool counts_the_same(const struct perf_event_attr *one, const struct perf_event_attr *other,
		     struct host *host);

/* The number of general counters of a hardware thread: it may be smaller if the core has two threads. */
unsigned int general_counters_of(const struct host *host);

/* Whether the kernel disables PEBS because of this machine's microcode. Sets `needed` to the first revision
 * with which it enables PEBS, 0 if there is none for this stepping (intel_snb_pebs_broken(),
 * intel/core.c). */
bool microcode_keeps_pebs_off(const struct host *host, __u32 *needed);

/* The off-core response register that an event with this config uses, or NULL. */
const struct offcore_register *offcore_register_of(const struct cpu_events *cpu, __u64 config);

/* Registers that some events need in addition to those of their counter: the kernel's extra_regs
 * (intel_nehalem_extra_regs, arch/x86/events/intel/core.c). A core has extra_registers_of() of each. */
enum extra_register {
	EXTRA_NONE,
	EXTRA_LOAD_LATENCY, /* MSR_PEBS_LD_LAT_THRESHOLD */
	EXTRA_OFFCORE,	    /* OFFCORE_RSP */
	EXTRA_REGISTERS
};

/* The extra register that an event with this config needs. The value of that register is config1. */
enum extra_register extra_register_of(const struct cpu_events *cpu, __u64 config);

/* The number of different values of an extra register that a core can hold at the same time. If there are two
 * off-core response registers, the kernel takes one that is free (intel_alt_er()). */
size_t extra_registers_of(const struct cpu_events *cpu, enum extra_register extra);
#define EXTRA_VALUES 2 /* the largest result of extra_registers_of() */

/* Whether the CPU has the fixed counter of a rule. */
bool has_fixed_counter(const struct cpu_events *cpu, const struct kernel_rule *rule);

/* Whether the CPU lacks this architectural event, according to CPUID. */
bool event_missing(const struct host *host, const struct known_event *event);

/* The bit of CPUID.0AH:EBX because of which the kernel does not offer one of perf's generic events, or -1 if
 * it offers the event. If an erratum set the bit, the driver may count another event instead, which it shows
 * in sysfs. */
int generic_missing(struct host *host, const struct generic_event *event);

/* The kernel's rule for an event: the first of the list that matches, or NULL. */
const struct kernel_rule *kernel_rule_of(const struct kernel_rule *rules, size_t nr, __u64 config);
