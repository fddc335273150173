// SPDX-License-Identifier: GPL-2.0-only
/* Requests of OTLP's metrics, halved by their data points. */
#include <string.h>

#include <jansson.h>

#include "base/array.h"
#include "base/memory.h"
#include "output/halves.h"

static json_t *metrics_of(json_t *request)
{
	json_t *resource = json_array_get(json_object_get(request, "resourceMetrics"), 0);
	json_t *scope = json_array_get(json_object_get(resource, "scopeMetrics"), 0);

	return json_object_get(scope, "metrics");
}

/* What has a metric's data points. */
static json_t *data_of(json_t *metric)
{
	static const char *const kinds[] = {"gauge", "sum", "histogram"};
	json_t *data = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(kinds) && !data; i++)
		data = json_object_get(metric, kinds[i]);
	return data;
}

static json_t *points_of(json_t *metric)
{
	return json_object_get(data_of(metric), "dataPoints");
}

static size_t count_points(json_t *metrics)
{
	json_t *metric;
	size_t i, nr = 0;

	json_array_foreach(metrics, i, metric)
		nr += json_array_size(points_of(metric));
	return nr;
}

/* Leaves the points from `first` up to `end`, and the metrics that have any of them. */
static void keep_points(json_t *metrics, size_t first, size_t end)
{
	json_t *all = json_copy(metrics), *metric, *point;
	size_t i, p, at = 0;

	json_array_clear(metrics);
	json_array_foreach(all, i, metric) {
		json_t *kept = json_array();

		json_array_foreach(points_of(metric), p, point) {
			if (at >= first && at < end)
				json_array_append(kept, point);
			at++;
		}
		json_object_set_new(data_of(metric), "dataPoints", kept);
		if (json_array_size(kept))
			json_array_append(metrics, metric);
	}
	json_decref(all);
}

bool otlp_halve(const char *bytes, size_t size, struct half halves[2])
{
	json_t *request = json_loadb(bytes, size, 0, NULL);
	size_t nr = count_points(metrics_of(request)), bounds[] = {0, nr / 2, nr};

	for (int i = 0; i < 2 && nr > 1; i++) {
		json_t *half = json_deep_copy(request);

		keep_points(metrics_of(half), bounds[i], bounds[i + 1]);
		halves[i].bytes = had(json_dumps(half, JSON_COMPACT));
		halves[i].size = strlen(halves[i].bytes);
		json_decref(half);
	}
	json_decref(request);
	return nr > 1;
}
