// SPDX-License-Identifier: GPL-2.0-only
#include "analyze/loads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/again.h"
#include "analyze/spots.h"
#include "analyze/where.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/note.h"
#include "output/member.h"

/* Core cycles of a load that the first level serves, which are no loss; the sampled ones take longer. */
#define FIRST_LEVEL 4

/* The PMU tags only some of the loads, and takes samples of these. */
#define TAGGED 0.1

/* Fewer samples give no mean. */
#define SAMPLES_LEAST 20

json_t *loads_sample(struct activity *activity, double occurrences, double wanted)
{
	struct arguments command = {0};
	json_t *records;
	char why[300];

	arguments_add(&command, "mem");
	arguments_add_number(&command, "--ldlat", FIRST_LEVEL + 1);
	arguments_add_option(&command, "--by", "page,variable,type");
	records = again_sample(activity, &command, occurrences * TAGGED, wanted, why, sizeof(why));
	if (!records)
		note("loads are not sampled: %s", why);
	arguments_release(&command);
	return records;
}

/* --- costs ------------------------------------------------------------------------------------ */

/* Columns of a histogram of latencies: each one's lower bound is twice that of the one before. */
#define NR_COLUMNS 16

/* Sums of the loads from some sources: what the samples stand for, and the most that their squares can be. */
struct latencies {
	double samples, period, sum, squares;
};

/* Adds the loads of a source or an entry. Of their latencies, the histogram says the columns: at the most all
 * are at the lower bounds, and what their sum has beyond takes them to the upper bounds, in the highest
 * columns first, where it adds most to the squares. */
static void add_latencies(struct latencies *sum, const json_t *loads)
{
	const json_t *histogram = json_object_get(loads, "latency_histogram_period");
	double beyond = integer(loads, "latency_sum_period"), most = integer(loads, "latency_max");
	double columns[NR_COLUMNS] = {0};
	const char *from;
	json_t *period;

	sum->samples += integer(loads, "samples");
	sum->sum += beyond;
	json_object_foreach((json_t *)histogram, from, period) {
		columns[ilogb(strtod(from, NULL))] = json_integer_value(period);
		sum->period += json_integer_value(period);
		beyond -= strtod(from, NULL) * json_integer_value(period);
	}
	for (int i = NR_COLUMNS - 1; i >= 0; i--) {
		double lower = ldexp(1, i), upper = i == NR_COLUMNS - 1 ? most : fmin(2 * lower, most);
		double moved = fmax(0, fmin(beyond, columns[i] * (upper - lower)));

		sum->squares += columns[i] * lower * lower + moved * (lower + upper);
		beyond -= moved;
	}
}

/* `list` is a member of the records, "sources" or "entries". */
static struct latencies latencies_of(const json_t *records, const char *list, const char *sources)
{
	struct latencies sum = {0};
	json_t *record, *loads;
	size_t i, l;

	json_array_foreach(records, i, record)
		json_array_foreach(json_object_get(record, list), l, loads)
			if (list_has(sources, string(loads, "source")))
				add_latencies(&sum, loads);
	return sum;
}

/* Entries, of which each has few loads, tell the squares better, where none were left out. Twice the error of
 * a mean holds it in 95 of 100. */
bool loads_cost(const json_t *records, const char *sources, struct cost_range *cost)
{
	struct latencies sum = latencies_of(records, "sources", sources);
	struct latencies entries = latencies_of(records, "entries", sources);
	double mean, error;

	if (sum.samples < SAMPLES_LEAST || sum.period <= 0)
		return false;
	if (entries.samples == sum.samples)
		sum = entries;
	mean = sum.sum / sum.period;
	error = 2 * sqrt(fmax(0, sum.squares / sum.period - mean * mean) / sum.samples);
	*cost = (struct cost_range){.samples = sum.samples,
				    .low = fmax(0, mean - error - FIRST_LEVEL),
				    .usual = fmax(0, mean - FIRST_LEVEL),
				    .high = fmax(0, mean + error - FIRST_LEVEL)};
	return true;
}

/* --- data ------------------------------------------------------------------------------------- */

/* What tells places apart: those of these members that an entry has. */
static json_t *spots_of(const json_t *records, const char *sources, const char *const *members)
{
	struct spots spots;
	json_t *record, *entry;
	size_t i, e;

	spots_begin(&spots);
	json_array_foreach(records, i, record)
		json_array_foreach(json_object_get(record, "entries"), e, entry) {
			json_t *spot;

			if (!list_has(sources, string(entry, "source")))
				continue;
			spot = json_object();
			for (size_t m = 0; members[m]; m++)
				if (json_object_get(entry, members[m]))
					json_object_set(spot, members[m], json_object_get(entry, members[m]));
			spots_add(&spots, spot, integer(entry, "period"));
		}
	return spots_end(&spots, WHERE_ENTRIES);
}

json_t *loads_pages(const json_t *records, const char *sources)
{
	return spots_of(records, sources, (const char *const[]){"page", NULL});
}

json_t *loads_objects(const json_t *records, const char *sources)
{
	return spots_of(records, sources,
			(const char *const[]){"variable", "data_type", "field", "data_module", NULL});
}
