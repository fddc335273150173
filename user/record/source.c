// SPDX-License-Identifier: GPL-2.0-only
#include "record/source.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "record/record.h"
#include "shared.h"

static const struct known_data_source *find_source(const struct host *host, __u64 data_src)
{
	for (size_t i = 0; host->events && i < host->events->nr_data_sources; i++)
		if (host->events->data_sources[i].perf_data_src == (data_src & ~DATA_SRC_ACCESS))
			return &host->events->data_sources[i];
	return NULL;
}

/* --- the kernel's words ----------------------------------------------------------------------- */

struct source_word {
	unsigned int value;
	const char *name, *perf;
};

static unsigned int field(__u64 data_src, int shift, int bits)
{
	return data_src >> shift & ((1U << bits) - 1);
}

/*
 * mem_lvl, one bit for each level. It is used before mem_lvl_num, because the drivers of old CPUs fill in
 * mem_lvl_num only in part: memory of another package with a shared line is "L3" there (ds.c,
 * pebs_data_source[0xb]).
 */
static const struct source_word levels[] = {
	{PERF_MEM_LVL_L1, "l1", "L1"},
	{PERF_MEM_LVL_LFB, "fill_buffer", "line fill buffer"},
	{PERF_MEM_LVL_L2, "l2", "L2"},
	{PERF_MEM_LVL_L3, "l3", "L3"},
	{PERF_MEM_LVL_LOC_RAM, "local_ram", "local RAM"},
	{PERF_MEM_LVL_REM_RAM1, "remote_ram", "remote RAM"},
	{PERF_MEM_LVL_REM_RAM2, "remote_ram_2_hops", "remote RAM, 2 hops"},
	{PERF_MEM_LVL_REM_CCE1, "remote_cache", "remote cache"},
	{PERF_MEM_LVL_REM_CCE2, "remote_cache_2_hops", "remote cache, 2 hops"},
	{PERF_MEM_LVL_IO, "io", "I/O"},
	{PERF_MEM_LVL_UNC, "uncached", "uncached"},
};

/* mem_lvl_num, a number. Debian 12's headers have no name for 0x8, which is from Linux 6.8. */
static const struct source_word level_numbers[] = {
	{PERF_MEM_LVLNUM_L1, "l1", "L1"},
	{PERF_MEM_LVLNUM_L2, "l2", "L2"},
	{PERF_MEM_LVLNUM_L3, "l3", "L3"},
	{PERF_MEM_LVLNUM_L4, "l4", "L4"},
	{0x8, "uncached", "uncached"},
	{PERF_MEM_LVLNUM_CXL, "cxl", "CXL memory"},
	{PERF_MEM_LVLNUM_IO, "io", "I/O"},
	{PERF_MEM_LVLNUM_ANY_CACHE, "cache", "any cache"},
	{PERF_MEM_LVLNUM_LFB, "fill_buffer", "line fill buffer"},
	{PERF_MEM_LVLNUM_RAM, "ram", "RAM"},
	{PERF_MEM_LVLNUM_PMEM, "pmem", "persistent memory"},
};

static const struct source_word snoops[] = {
	{PERF_MEM_SNOOP_HITM, "_snoop_hitm", ", snoop hit modified"},
	{PERF_MEM_SNOOP_HIT, "_snoop_hit", ", snoop hit"},
	{PERF_MEM_SNOOP_NONE | PERF_MEM_SNOOP_MISS, "", ", no snoop or snoop miss"},
	{PERF_MEM_SNOOP_MISS, "_snoop_miss", ", snoop miss"},
	{PERF_MEM_SNOOP_NONE, "", ", no snoop"},
};

static const struct source_word forwards[] = {
	{PERF_MEM_SNOOPX_FWD, "_forwarded", ", forwarded"},
	{PERF_MEM_SNOOPX_PEER, "_peer", ", from a peer"},
};

static const struct source_word operations[] = {
	{PERF_MEM_OP_STORE, "store_", "store: "},
	{PERF_MEM_OP_PFETCH, "prefetch_", "prefetch: "},
	{PERF_MEM_OP_EXEC, "fetch_", "instruction fetch: "},
};

#define FIND(words, wanted) find_word(words, ARRAY_SIZE(words), wanted)

/* The first word whose bits are all set in `wanted`; an empty one if there is none. */
static struct source_word find_word(const struct source_word *words, size_t nr, unsigned int wanted)
{
	for (size_t i = 0; i < nr; i++)
		if ((wanted & words[i].value) == words[i].value)
			return words[i];
	return (struct source_word){0, "", ""};
}

static struct source_word find_number(unsigned int number)
{
	for (size_t i = 0; i < ARRAY_SIZE(level_numbers); i++)
		if (level_numbers[i].value == number)
			return level_numbers[i];
	return (struct source_word){0, "", ""};
}

/* Name and description of a source, from its fields. Returns false if they don't name a level. */
static bool describe_source(__u64 data_src, char name[SOURCE_NAME_SIZE], char perf[SOURCE_NAME_SIZE])
{
	unsigned int lvl = field(data_src, PERF_MEM_LVL_SHIFT, 14);
	unsigned int hops = field(data_src, PERF_MEM_HOPS_SHIFT, 3);
	bool numbered = !(lvl & ~(PERF_MEM_LVL_NA | PERF_MEM_LVL_HIT | PERF_MEM_LVL_MISS));
	bool remote = numbered && field(data_src, PERF_MEM_REMOTE_SHIFT, 1);
	struct source_word op = FIND(operations, field(data_src, PERF_MEM_OP_SHIFT, 5));
	struct source_word level =
		numbered ? find_number(field(data_src, PERF_MEM_LVLNUM_SHIFT, 4)) : FIND(levels, lvl);
	struct source_word snoop = FIND(snoops, field(data_src, PERF_MEM_SNOOP_SHIFT, 5));
	struct source_word forward = FIND(forwards, field(data_src, PERF_MEM_SNOOPX_SHIFT, 2));
	const char *outcome = lvl & PERF_MEM_LVL_MISS ? "miss" : lvl & PERF_MEM_LVL_HIT ? "hit" : "";
	char far[24] = "";

	if (!level.value)
		return false;
	if (hops)
		snprintf(far, sizeof(far), "_hops_%u", hops - 1);
	snprintf(name, SOURCE_NAME_SIZE, "%s%s%s%s%s%s%s%s", op.name, remote ? "remote_" : "", level.name,
		 *outcome ? "_" : "", outcome, snoop.name, forward.name, far);
	snprintf(perf, SOURCE_NAME_SIZE, "%s%s%s%s%s%s%s", op.perf, remote ? "remote " : "", level.perf,
		 *outcome ? " " : "", outcome, snoop.perf, forward.perf);
	return true;
}

const char *source_tlb(__u32 tlb)
{
	if (tlb & PERF_MEM_TLB_MISS)
		return tlb & PERF_MEM_TLB_L2 ? "stlb_miss" : "miss";
	return tlb & PERF_MEM_TLB_HIT ? "hit" : "unknown";
}

const char *source_lock(__u32 lock)
{
	if (lock & PERF_MEM_LOCK_NA)
		return "unknown";
	return lock & PERF_MEM_LOCK_LOCKED ? "locked" : "none";
}

/* --- records ---------------------------------------------------------------------------------- */

void source_name(struct field *field, const struct host *host, __u64 data_src)
{
	const struct known_data_source *source = find_source(host, data_src);
	char name[SOURCE_NAME_SIZE], perf[SOURCE_NAME_SIZE];

	if (source)
		field_set_string(field, source->name);
	else if (source_unmeasured(data_src))
		field_set_string(field, "unmeasured");
	else if (describe_source(data_src, name, perf))
		field_set_value(field, json_string(name));
	else
		field_set_hex(field, data_src);
}

static void put_known(json_t *record, const struct host *host, const struct known_data_source *source)
{
	const struct known_data_source *all = host->events->data_sources;
	json_t *codes = json_array(), *folded = json_array();

	for (size_t i = 0; i < host->events->nr_data_sources; i++) {
		if (all[i].perf_data_src != source->perf_data_src)
			continue;
		json_array_append_new(codes, value_hex(all[i].code));
		if (&all[i] != source)
			json_array_append_new(folded, json_string(all[i].name));
	}
	json_object_set_new(record, "codes", codes);
	if (json_array_size(folded))
		json_object_set(record, "folded", folded);
	json_decref(folded);
	if (source->reserved)
		json_object_set_new(record, "reserved", json_true());
	json_object_set_new(record, "description", json_string(source->description));
}

void put_source(json_t *record, const struct host *host, __u64 data_src)
{
	const struct known_data_source *source = find_source(host, data_src);
	char name[SOURCE_NAME_SIZE], perf[SOURCE_NAME_SIZE];
	struct fields fields;

	fields_begin(&fields);
	source_name(fields_add(&fields, "source"), host, data_src);
	fields.owns = true;
	fields_hex(&fields, "data_src", data_src);
	fields_put(&fields, record);
	fields_clear(&fields);
	if (source)
		put_known(record, host, source);
	if (source)
		json_object_set_new(record, "perf", json_string(source->perf));
	else if (!source_unmeasured(data_src) && describe_source(data_src, name, perf))
		json_object_set_new(record, "perf", json_string(perf));
}

static __u64 snoop(__u64 data_src)
{
	return data_src >> PERF_MEM_SNOOP_SHIFT & 0x1f;
}

bool source_store(__u64 data_src)
{
	return !source_unmeasured(data_src) && field(data_src, PERF_MEM_OP_SHIFT, 5) & PERF_MEM_OP_STORE;
}

bool source_other_core(__u64 data_src)
{
	const __u64 caches = PERF_MEM_LVL_L3 | PERF_MEM_LVL_REM_CCE1 | PERF_MEM_LVL_REM_CCE2;

	/* Sources that are memory don't count here, even though their snoop bit is set if another cache has
	 * the line. */
	if (source_unmeasured(data_src) ||
	    !(data_src >> PERF_MEM_LVL_SHIFT & caches ||
	      field(data_src, PERF_MEM_LVLNUM_SHIFT, 4) == PERF_MEM_LVLNUM_ANY_CACHE))
		return false;
	return snoop(data_src) & (PERF_MEM_SNOOP_HIT | PERF_MEM_SNOOP_HITM) ||
	       field(data_src, PERF_MEM_SNOOPX_SHIFT, 2);
}
