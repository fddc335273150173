// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap mem: loads by where they found their data, and how long they took. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "record/entry.h"
#include "record/source.h"
#include "run/run.h"
#include "run/sampling.h"

/* --- sums by source ------------------------------------------------------------------------------- */

/* The guide has 16 codes; kernels may differ in a few more values. */
#define SOURCES_MOST 32

struct by_source {
	const struct layout *layout;
	size_t nr;
	__u64 sources[SOURCES_MOST];
	__u64 *values; /* of each: layout.value_size bytes */
};

static __u64 *values_of(const struct by_source *sums, size_t i)
{
	return sums->values + i * (sums->layout->value_size / sizeof(__u64));
}

static void add_entry(struct by_source *sums, const struct entry *entry)
{
	__u64 source = key_number(sums->layout, entry, "source");
	size_t i = 0;

	while (i < sums->nr && sums->sources[i] != source)
		i++;
	if (i == SOURCES_MOST)
		return;
	if (i == sums->nr)
		sums->sources[sums->nr++] = source;
	values_add(sums->layout, values_of(sums, i), entry->values);
}

/* The place of the source with the most samples that has not been taken; samples are the first word. */
static size_t next_source(const struct by_source *sums, const bool *taken)
{
	size_t most = SOURCES_MOST;

	for (size_t i = 0; i < sums->nr; i++)
		if (!taken[i] && (most == SOURCES_MOST ||
				  values_of(sums, i)[0] > values_of(sums, most)[0]))
			most = i;
	return most;
}

static json_t *sources_value(const struct host *host, const struct sampled *sampled)
{
	struct by_source sums = {.layout = sampled->layout};
	bool taken[SOURCES_MOST] = {false};
	json_t *list = json_array();

	sums.values = calloc(SOURCES_MOST, sampled->layout->value_size);
	for (size_t i = 0; i < sampled->reading->nr_entries; i++)
		add_entry(&sums, &sampled->reading->entries[i]);
	for (size_t n = 0; n < sums.nr; n++) {
		size_t i = next_source(&sums, taken);
		json_t *value = json_object();

		taken[i] = true;
		put_source(value, host, sums.sources[i]);
		put_values(value, host, sums.layout, values_of(&sums, i));
		json_array_append_new(list, value);
	}
	free(sums.values);
	return list;
}

/* --- records --------------------------------------------------------------------------------------- */

/* The threshold is one register of the core, for both of its threads and for all events: another value
 * there keeps this event out (intel_shared_reg_get_constraints(), arch/x86/events/intel/core.c). */
static void put_status(const struct sampled *sampled, json_t *record)
{
	const struct count *count = sampled->count;
	bool all = count->running_ns == count->enabled_ns;

	json_object_set_new(record, "status",
			    json_string(all && count->enabled_ns ? "counted"
					: count->running_ns	 ? "multiplexed"
								 : "not_counted"));
	if (!all && sampled->event->attr.config1)
		json_object_set_new(record, "why",
				    json_string("each core has one load-latency threshold, for both of its "
						"threads; another event holds it with another value"));
}

static void mem_complete(const struct run *run, const struct sampled *sampled, json_t *record)
{
	put_status(sampled, record);
	json_object_set_new(record, "sources", sources_value(&run->host, sampled));
}

int command_mem(const struct options *options, struct refusal *refusal)
{
	static const struct sampling mem = {
		.command = "mem",
		.aggregation = "mem",
		.default_keys = "source",
		.plan = plan_mem,
		.knows_throttling = true,
		.complete = mem_complete,
	};

	return sampling_run(&mem, options, refusal);
}
