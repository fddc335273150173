/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where an access found its data: perf_mem_data_src, by its fields. A CPU's table names the values that
 * its driver makes of the codes in its PEBS records; every other value is named by the kernel's words.
 */
#ifndef NHMTAP_SOURCE_H
#define NHMTAP_SOURCE_H

#include <stdbool.h>
#include <jansson.h>

#include "host/host.h"

/* Enough for each name and description of this file. */
#define SOURCE_NAME_SIZE 64

/*
 * The name of what answered: the CPU's table's ("local_dram_exclusive"), else one made of op, level, remote,
 * snoop and hops ("remote_l3_hit_snoop_hitm"); "unmeasured" where the event has no source; the value in
 * hex where no field says anything. Fields about the access itself (DATA_SRC_ACCESS) don't matter. A new
 * reference.
 */
json_t *source_name(const struct host *host, __u64 data_src);

/* Puts name and value into a record; what the table says of it, if it does; and the kernel's words. Several
 * codes of which the kernel makes the same value cannot be told apart: the others' names are in `folded`. */
void put_source(json_t *record, const struct host *host, __u64 data_src);

/* The result of the address translation, from mem_dtlb: "hit", "stlb_miss", "miss", or "unknown" if the
 * record does not say. The kernel does not distinguish hits of the first and second level. */
const char *source_tlb(__u32 tlb);

/* Of mem_lock: "locked", "none", or "unknown". */
const char *source_lock(__u32 lock);

/* Whether it is a store. */
bool source_store(__u64 data_src);

/* Whether another core's cache, of this package or another, had the line: modified, or in any state. */
bool source_modified(__u64 data_src);
bool source_other_core(__u64 data_src);

#endif
