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
	arguments_add_option(&command, "--by", "page");
	arguments_add_number(&command, "-c",
			     period_for(&activity->session->host, occurrences * TAGGED, wanted));
	records = again_run(activity, &command, why, sizeof(why));
	if (!records)
		note("loads are not sampled: %s", why);
	arguments_release(&command);
	return records;
}

/* --- costs ------------------------------------------------------------------------------------ */

/* Sums of the loads from some sources. */
struct latencies {
	double samples, period, sum;
	double least, most;
};

/* The lowest latency that a histogram's first column can have. */
static double least_of(const json_t *histogram)
{
	double least = INFINITY;
	const char *from;
	json_t *number;

	json_object_foreach((json_t *)histogram, from, number)
		least = fmin(least, strtod(from, NULL));
	return isfinite(least) ? least : 0;
}

static void add_latencies(struct latencies *sum, const json_t *source)
{
	sum->samples += integer(source, "samples");
	sum->period += integer(source, "period");
	sum->sum += integer(source, "latency_sum_period");
	sum->least = fmin(sum->least, least_of(json_object_get(source, "latency_histogram")));
	sum->most = fmax(sum->most, integer(source, "latency_max"));
}

static struct latencies latencies_of(const json_t *records, const char *sources)
{
	struct latencies sum = {.least = INFINITY};
	json_t *record, *source;
	size_t i, s;

	json_array_foreach(records, i, record)
		json_array_foreach(json_object_get(record, "sources"), s, source)
			if (list_has(sources, string(source, "source")))
				add_latencies(&sum, source);
	return sum;
}

/* Numbers from `least` to `most` with this mean spread no more than if all were one of both: Bhatia and
 * Davis. Twice the error of their mean holds it in 95 of 100. */
bool loads_cost(const json_t *records, const char *sources, struct cost_range *cost)
{
	struct latencies sum = latencies_of(records, sources);
	double mean, error;

	if (sum.samples < SAMPLES_LEAST || sum.period <= 0)
		return false;
	mean = sum.sum / sum.period;
	error = 2 * sqrt(fmax(0, (sum.most - mean) * (mean - fmin(sum.least, mean))) / sum.samples);
	*cost = (struct cost_range){.samples = sum.samples,
				    .low = fmax(0, mean - error - FIRST_LEVEL),
				    .usual = fmax(0, mean - FIRST_LEVEL),
				    .high = fmax(0, mean + error - FIRST_LEVEL)};
	return true;
}

/* --- data ------------------------------------------------------------------------------------- */

json_t *loads_pages(const json_t *records, const char *sources)
{
	struct spots spots;
	json_t *record, *entry;
	size_t i, e;

	spots_begin(&spots);
	json_array_foreach(records, i, record)
		json_array_foreach(json_object_get(record, "entries"), e, entry) {
			json_t *page;

			if (!list_has(sources, string(entry, "source")))
				continue;
			page = json_object();
			json_object_set(page, "page", json_object_get(entry, "page"));
			spots_add(&spots, page, integer(entry, "period"));
		}
	return spots_end(&spots, WHERE_ENTRIES);
}
