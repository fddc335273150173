/* SPDX-License-Identifier: GPL-2.0-only */
/* Prints the value that Linux gives each code of a load-latency record: pebs_data_source[] of
 * arch/x86/events/intel/ds.c after intel_pmu_pebs_data_source_nhm(), written with uapi's macros.
 * The fields that the driver adds per access are left out, because they differ from CPU to CPU:
 * mem_dtlb, mem_lock, mem_blk. */
#include <stdio.h>
#include <linux/perf_event.h>

#define P(field, value) PERF_MEM_S(field, value)
#define LOAD_HIT	(P(OP, LOAD) | P(LVL, HIT))
#define NONE_OR_MISS	(P(SNOOP, NONE) | P(SNOOP, MISS))
#define REMOTE		P(REMOTE, REMOTE)

int main(void)
{
	static const unsigned long long made[] = {
		[0x0] = P(OP, LOAD) | P(LVL, MISS) | P(LVLNUM, L3) | P(SNOOP, NA),
		[0x1] = LOAD_HIT | P(LVL, L1) | P(LVLNUM, L1) | P(SNOOP, NONE),
		[0x2] = LOAD_HIT | P(LVL, LFB) | P(LVLNUM, LFB) | P(SNOOP, NONE),
		[0x3] = LOAD_HIT | P(LVL, L2) | P(LVLNUM, L2) | P(SNOOP, NONE),
		[0x4] = LOAD_HIT | P(LVL, L3) | P(LVLNUM, L3) | P(SNOOP, NONE),
		[0x5] = LOAD_HIT | P(LVL, L3) | P(LVLNUM, L3) | P(SNOOP, HIT),
		[0x6] = LOAD_HIT | P(LVL, L3) | P(LVLNUM, L3) | P(SNOOP, HITM),
		[0x7] = LOAD_HIT | P(LVL, L3) | P(LVLNUM, L3) | P(SNOOP, HITM),
		[0x8] = LOAD_HIT | P(LVL, REM_CCE1) | REMOTE | P(LVLNUM, L3) | P(SNOOP, HIT),
		[0x9] = LOAD_HIT | P(LVL, REM_CCE1) | REMOTE | P(LVLNUM, L3) | P(SNOOP, HITM),
		[0xa] = LOAD_HIT | P(LVL, LOC_RAM) | P(LVLNUM, RAM) | P(SNOOP, HIT),
		[0xb] = LOAD_HIT | P(LVL, REM_RAM1) | REMOTE | P(LVLNUM, L3) | P(SNOOP, HIT),
		[0xc] = LOAD_HIT | P(LVL, LOC_RAM) | P(LVLNUM, RAM) | NONE_OR_MISS,
		[0xd] = LOAD_HIT | P(LVL, REM_RAM1) | P(LVLNUM, RAM) | REMOTE | NONE_OR_MISS,
		[0xe] = LOAD_HIT | P(LVL, IO) | P(LVLNUM, NA) | P(SNOOP, NONE),
		[0xf] = LOAD_HIT | P(LVL, UNC) | P(LVLNUM, NA) | P(SNOOP, NONE),
	};

	for (unsigned int code = 0; code < 16; code++)
		printf("%u\t%#llx\n", code, made[code]);
	return 0;
}
