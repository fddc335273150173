// SPDX-License-Identifier: GPL-2.0-only
#include "record/source.h"

#include <linux/perf_event.h>

#include "record/record.h"

static const struct known_data_source *find(const struct host *host, __u64 data_src)
{
	for (size_t i = 0; host->events && i < host->events->nr_data_sources; i++)
		if (host->events->data_sources[i].perf_data_src == data_src)
			return &host->events->data_sources[i];
	return NULL;
}

/* Kernels differ in what else they set where nothing was measured (PERF_MEM_NA). */
static bool unmeasured(__u64 data_src)
{
	return !data_src || data_src >> PERF_MEM_OP_SHIFT & PERF_MEM_OP_NA;
}

json_t *source_name(const struct host *host, __u64 data_src)
{
	const struct known_data_source *source = find(host, data_src);

	if (source)
		return json_string(source->name);
	return unmeasured(data_src) ? json_string("unmeasured") : value_hex(data_src);
}

static void put_known(json_t *record, const struct host *host,
		      const struct known_data_source *source)
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
	json_object_set_new(record, "perf", json_string(source->perf));
}

void put_source(json_t *record, const struct host *host, __u64 data_src)
{
	const struct known_data_source *source = find(host, data_src);

	json_object_set_new(record, "source", source_name(host, data_src));
	json_object_set_new(record, "data_src", value_hex(data_src));
	if (source)
		put_known(record, host, source);
}

static __u64 snoop(__u64 data_src)
{
	return data_src >> PERF_MEM_SNOOP_SHIFT & 0x1f;
}

bool source_modified(__u64 data_src)
{
	return !unmeasured(data_src) && snoop(data_src) & PERF_MEM_SNOOP_HITM;
}

bool source_other_core(__u64 data_src)
{
	const __u64 caches = PERF_MEM_LVL_L3 | PERF_MEM_LVL_REM_CCE1 | PERF_MEM_LVL_REM_CCE2;

	/* Memory that answers while another cache has the line has its snoop bit set too. */
	return !unmeasured(data_src) && data_src >> PERF_MEM_LVL_SHIFT & caches &&
	       snoop(data_src) & (PERF_MEM_SNOOP_HIT | PERF_MEM_SNOOP_HITM);
}
