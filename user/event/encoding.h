/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel's driver makes of an event before it looks at its rules. */
#ifndef NHMTAP_ENCODING_H
#define NHMTAP_ENCODING_H

#include <stdbool.h>
#include <linux/types.h>

#include "event/event.h"
#include "tables/config.h"
#include "tables/names.h"

/* The raw event that counts: for perf's generic ones the kernel's choice. */
struct encoding {
	__u64 config, config1;
	const char *note; /* when it is another one, or NULL */
	char source[192]; /* who says that it is this one */
};

/* Returns false where the attr is no event of the core's PMU, or the kernel has none for it. The
 * host must have a table of its CPU. */
bool encoding_of(const struct perf_event_attr *attr, struct host *host, struct encoding *encoding);

/* The general counters that a thread has: fewer where it shares its core. */
unsigned int general_counters_of(const struct host *host);

/* Whether the kernel keeps PEBS off for the microcode of this machine. `needed` is the revision that it
 * works with, 0 if the kernel knows none for the stepping (intel_snb_pebs_broken(), intel/core.c). */
bool microcode_keeps_pebs_off(const struct host *host, __u32 *needed);

/* The register that an event with this encoding's config counts off-core responses by, or NULL. */
const struct offcore_register *offcore_register_of(const struct cpu_events *cpu, __u64 config);

/* Registers beside a counter's own that some events need: the kernel's extra_regs
 * (intel_nehalem_extra_regs, arch/x86/events/intel/core.c). A core has extra_registers_of() of each. */
enum extra_register {
	EXTRA_NONE,
	EXTRA_LOAD_LATENCY, /* MSR_PEBS_LD_LAT_THRESHOLD */
	EXTRA_OFFCORE,	    /* OFFCORE_RSP */
	EXTRA_REGISTERS
};

/* The one that an event with this encoding's config needs; its value is config1. */
enum extra_register extra_register_of(const struct cpu_events *cpu, __u64 config);

/* How many values of an extra register a core can hold at once: where there are two for off-core
 * responses, the kernel takes whichever is free (intel_alt_er()). */
size_t extra_registers_of(const struct cpu_events *cpu, enum extra_register extra);
#define EXTRA_VALUES 2 /* the most of them */

/* Whether the CPU has the fixed counter of a rule. */
bool has_fixed_counter(const struct cpu_events *cpu, const struct kernel_rule *rule);

/* Whether CPUID says that the CPU lacks this event of the architecture. */
bool event_missing(const struct host *host, const struct known_event *event);

/* The bit of CPUID.0AH:EBX for which the kernel has taken one of perf's own names away, else -1. Where an
 * erratum set it the driver may count another event under that name, and names it in sysfs. */
int generic_missing(struct host *host, const struct generic_event *event);

/* The rule of the kernel that holds for an event: the first of the list, or NULL. */
const struct kernel_rule *kernel_rule_of(const struct kernel_rule *rules, size_t nr, __u64 config);

#endif
