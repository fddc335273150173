/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where an access found its data: perf_mem_data_src and its fields. The table of a CPU has names for the
 * values that its driver makes of the codes in PEBS records. Other values are named by the kernel's words for
 * their fields.
 */
#pragma once

#include <stdbool.h>
#include <jansson.h>
#include <linux/perf_event.h>

#include "host/host.h"
#include "record/fields.h"

/* Large enough for any name and description made here. */
#define SOURCE_NAME_SIZE 64

/*
 * The name of the source: the CPU table's ("local_dram_exclusive"), or one made of op, level, remote, snoop
 * and hops ("remote_l3_hit_snoop_hitm"); "unmeasured" if the event has no source; the value in hex if no
 * field names a level. Fields about the access itself (DATA_SRC_ACCESS) are ignored.
 */
void source_name(struct field *field, const struct host *host, __u64 data_src);

/*
 * Adds to a record the source's name and value, the CPU table's description if there is one, and the kernel's
 * words. If the kernel makes the same value of several codes, these can't be distinguished: the names of the
 * others are in `folded`.
 */
void put_source(json_t *record, const struct host *host, __u64 data_src);

/* The result of the address translation, from mem_dtlb: "hit", "stlb_miss", "miss", or "unknown" if the PEBS
 * record does not have it. The kernel does not distinguish hits in the first and second level. */
const char *source_tlb(__u32 tlb);

/* From mem_lock: "locked", "none", or "unknown". */
const char *source_lock(__u32 lock);

/* No source was measured (PERF_MEM_NA). Kernels differ in the other bits that they set then. */
static inline bool source_unmeasured(__u64 data_src)
{
	return !data_src || data_src >> PERF_MEM_OP_SHIFT & PERF_MEM_OP_NA;
}

/* Whether the access is a store. */
bool source_store(__u64 data_src);

/* Whether the line was in another core's cache, of this package or another: source_modified(): in modified
 * state, source_other_core(): in any state. */
static inline bool source_modified(__u64 data_src)
{
	return !source_unmeasured(data_src) && data_src >> PERF_MEM_SNOOP_SHIFT & PERF_MEM_SNOOP_HITM;
}

bool source_other_core(__u64 data_src);
