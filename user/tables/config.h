/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fields of perf_event_attr.config for a core event. Bits: guide, IA32_PERFEVTSELx; the kernel keeps
 * those of X86_RAW_EVENT_MASK and AnyThread (asm/perf_event.h).
 */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

#include "tables/known_event.h"

#define CONFIG_EVENT	   0x000000ffULL
#define CONFIG_UMASK	   0x0000ff00ULL
#define CONFIG_SELECT	   (CONFIG_EVENT | CONFIG_UMASK)
#define CONFIG_EDGE	   (1ULL << 18)
#define CONFIG_PC	   (1ULL << 19)
#define CONFIG_ANY	   (1ULL << 21)
#define CONFIG_INV	   (1ULL << 23)
#define CONFIG_CMASK	   0xff000000ULL
#define CONFIG_CMASK_SHIFT 24

/* Whether an event with this config is the one to which the load-latency threshold applies. */
static inline bool is_load_latency(const struct cpu_events *cpu, __u64 config)
{
	return cpu->load_latency && (config & CONFIG_SELECT) == cpu->load_latency;
}

/* Whether it is the one whose PEBS records have the address of a store. */
static inline bool is_precise_store(const struct cpu_events *cpu, __u64 config)
{
	return cpu->precise_store && (config & CONFIG_SELECT) == cpu->precise_store;
}

/* The bits that the parts have in an off-core register. `kinds`: only those of parts of one of these kinds
 * (enum offcore_kind); 0: all. */
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
	if (!kinds)
		return 0;
	return offcore_bits(offcore->requests, offcore->nr_requests, kinds) |
	       offcore_bits(offcore->responses, offcore->nr_responses, kinds);
}
