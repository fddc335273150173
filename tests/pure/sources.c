/* SPDX-License-Identifier: GPL-2.0-only */
/* Prints the names of values of perf_mem_data_src on a CPU without a table. Each line has the
 * value's name in this file, the source, the kernel's words, TLB, lock, and "m" and "o" for
 * source_modified() and source_other_core(). The values are written with uapi's macros. */
#include <stdio.h>
#include <linux/perf_event.h>

#include "record/source.h"

#define P(field, value) PERF_MEM_S(field, value)
#define LOAD_HIT	(P(OP, LOAD) | P(LVL, HIT))
#define STORE_L1	(P(OP, STORE) | P(LVL, L1) | P(SNOOP, NA))
#define TLB_HIT		(P(TLB, HIT) | P(TLB, L1) | P(TLB, L2))
#define TLB_MISS	(P(TLB, MISS) | P(TLB, L2))

static const struct {
	const char *what;
	__u64 data_src;
} values[] = {
	/* From PEBS records, as the driver decodes them in arch/x86/events/intel/ds.c:
	 * pebs_data_source[] and its patches, precise_store_data(), pebs_set_tlb_lock(). */
	{"snb 1", LOAD_HIT | P(LVL, L1) | P(LVLNUM, L1) | P(SNOOP, NONE) | TLB_HIT | P(BLK, NA)},
	{"snb 1 locked", LOAD_HIT | P(LVL, L1) | P(LVLNUM, L1) | P(SNOOP, NONE) | TLB_HIT | P(LOCK, LOCKED)},
	{"snb 1 walked", LOAD_HIT | P(LVL, L1) | P(LVLNUM, L1) | P(SNOOP, NONE) | TLB_MISS},
	{"snb 0", P(OP, LOAD) | P(LVL, MISS) | P(LVLNUM, L3) | P(SNOOP, NA) | TLB_HIT},
	{"snb 7", LOAD_HIT | P(LVL, L3) | P(LVLNUM, L3) | P(SNOOP, HITM) | TLB_HIT},
	{"snb 5", LOAD_HIT | P(LVL, L3) | P(LVLNUM, L3) | P(SNOOP, MISS) | TLB_HIT},
	{"snb b", LOAD_HIT | P(LVL, REM_RAM1) | P(REMOTE, REMOTE) | P(LVLNUM, L3) | P(SNOOP, HIT) | TLB_HIT},
	{"snb c", LOAD_HIT | P(LVL, LOC_RAM) | P(LVLNUM, RAM) | P(SNOOP, NONE) | P(SNOOP, MISS) | TLB_HIT},
	{"snb f", LOAD_HIT | P(LVL, UNC) | P(LVLNUM, NA) | P(SNOOP, NONE) | TLB_HIT},
	{"snb store hit", STORE_L1 | P(LVL, HIT) | P(TLB, L2) | P(TLB, HIT)},
	{"snb store miss", STORE_L1 | P(LVL, MISS) | TLB_MISS | P(LOCK, LOCKED)},
	{"skl 8 pmem", LOAD_HIT | P(LVLNUM, PMEM) | P(SNOOP, HIT) | TLB_HIT},
	{"skl b", LOAD_HIT | P(LVLNUM, RAM) | P(REMOTE, REMOTE) | P(SNOOP, NONE) | TLB_HIT},
	{"skl c", LOAD_HIT | P(LVLNUM, ANY_CACHE) | P(REMOTE, REMOTE) | P(SNOOPX, FWD) | TLB_HIT},
	{"skl d", LOAD_HIT | P(LVLNUM, ANY_CACHE) | P(REMOTE, REMOTE) | P(SNOOP, HITM) | TLB_HIT},
	/* From AMD's IBS: perf_ibs_get_mem_lvl() in arch/x86/events/amd/ibs.c. */
	{"ibs far cache", LOAD_HIT | P(LVLNUM, ANY_CACHE) | P(REMOTE, REMOTE) | P(HOPS, 1)},
	{"nothing", 0},
	{"not available", P(OP, NA) | P(LVL, NA) | P(SNOOP, NA) | P(LOCK, NA) | P(TLB, NA)},
	{"no level", P(OP, LOAD) | P(LVL, NA)},
};

int main(void)
{
	static const struct host host; /* without a table */

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		__u64 value = values[i].data_src;
		json_t *record = json_object();
		const char *perf;

		put_source(record, &host, value);
		perf = json_string_value(json_object_get(record, "perf"));
		printf("%s\t%s\t%s\t%s\t%s\t%s%s\n", values[i].what,
		       json_string_value(json_object_get(record, "source")), perf ? perf : "",
		       source_tlb(value >> PERF_MEM_TLB_SHIFT & 0x7f),
		       source_lock(value >> PERF_MEM_LOCK_SHIFT & 3), source_modified(value) ? "m" : "",
		       source_other_core(value) ? "o" : "");
		json_decref(record);
	}
	return 0;
}
