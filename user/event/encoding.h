/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fields of perf_event_attr.config for a core event of Nehalem's kind, and what the kernel's
 * driver makes of an event before it looks at its rules. Bits: guide, IA32_PERFEVTSELx; the kernel
 * keeps those of X86_RAW_EVENT_MASK and AnyThread (asm/perf_event.h).
 */
#ifndef NHMTAP_ENCODING_H
#define NHMTAP_ENCODING_H

#include <stdbool.h>
#include <linux/types.h>

#include "event/event.h"

#define CONFIG_EVENT	   0x000000ffULL
#define CONFIG_UMASK	   0x0000ff00ULL
#define CONFIG_SELECT	   (CONFIG_EVENT | CONFIG_UMASK)
#define CONFIG_EDGE	   (1ULL << 18)
#define CONFIG_PC	   (1ULL << 19)
#define CONFIG_ANY	   (1ULL << 21)
#define CONFIG_INV	   (1ULL << 23)
#define CONFIG_CMASK	   0xff000000ULL
#define CONFIG_CMASK_SHIFT 24

/* Whether an event with this config is the one that the load-latency threshold belongs to. */
static inline bool is_load_latency(const struct cpu_events *cpu, __u64 config)
{
	return cpu->load_latency && (config & CONFIG_SELECT) == cpu->load_latency;
}

/* Whether it is the one whose records have the address of a store. */
static inline bool is_precise_store(const struct cpu_events *cpu, __u64 config)
{
	return cpu->precise_store && (config & CONFIG_SELECT) == cpu->precise_store;
}

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

/* The bits of a CPU's off-core register that requests have, and responses; those of a kind (enum
 * offcore_kind). */
static inline __u64 offcore_bits(const struct offcore_part *parts, size_t nr, unsigned int kinds)
{
	__u64 bits = 0;

	for (size_t i = 0; i < nr; i++)
		bits |= !kinds || parts[i].kinds & kinds ? parts[i].bits : 0;
	return bits;
}

static inline __u64 offcore_requests(const struct known_offcore *offcore)
{
	return offcore_bits(offcore->requests, offcore->nr_requests, 0);
}

static inline __u64 offcore_responses(const struct known_offcore *offcore)
{
	return offcore_bits(offcore->responses, offcore->nr_responses, 0);
}

static inline __u64 offcore_bits_of_kind(const struct known_offcore *offcore, unsigned int kinds)
{
	return offcore_bits(offcore->requests, offcore->nr_requests, kinds) |
	       offcore_bits(offcore->responses, offcore->nr_responses, kinds);
}

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

/* The rule of the kernel that holds for an event: the first of the list, or NULL. */
const struct kernel_rule *kernel_rule_of(const struct kernel_rule *rules, size_t nr, __u64 config);

#endif
