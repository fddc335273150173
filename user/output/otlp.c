// SPDX-License-Identifier: GPL-2.0-only
/*
 * OpenTelemetry's metrics in OTLP's JSON encoding. A line, or a request, is a MetricsData message with what
 * was counted since the previous one, or since the first one if the output is cumulative. (In metrics.proto
 * and metrics_service.proto of opentelemetry-proto, MetricsData and the request have a single member of the
 * same name.) The encoding has 64-bit integers as strings, and enumerations as numbers.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "output/member.h"
#include "output/meters.h"
#include "output/otlp_resource.h"
#include "output/output.h"
#include "record/compact.h"

#define TEMPORALITY_DELTA      1
#define TEMPORALITY_CUMULATIVE 2

#define CLOCKS_APART_NS 1000000 /* more between two ends is another interval */

struct otlp {
	struct meters *meters;
	bool cumulative;    /* points are of all since the first record, otherwise since the previous line */
	__u64 since, until; /* the interval of the gathered points, ns since 1970 */
	__u64 began;	    /* the same as `since`; see began_ns of a stream */
	__u64 records;	    /* number of records that had any metrics */
	struct otlp_contexts contexts;
};

/* --- values ----------------------------------------------------------------------------------- */

static json_t *whole(__u64 number)
{
	return json_sprintf("%llu", number);
}

static json_t *any_value(const json_t *value)
{
	if (json_is_integer(value))
		return json_pack("{s:o}", "intValue", whole(json_integer_value(value)));
	if (json_is_boolean(value))
		return json_pack("{s:O}", "boolValue", value);
	if (json_is_real(value))
		return json_pack("{s:O}", "doubleValue", value);
	return json_pack("{s:O}", "stringValue", value);
}

static void add_attribute(json_t *attributes, const char *name, json_t *value)
{
	json_array_append_new(attributes, json_pack("{s:s, s:o}", "key", name, "value", value));
}

static json_t *attributes_of(const json_t *labels)
{
	json_t *attributes = json_array(), *value;
	const char *name;

	json_object_foreach((json_t *)labels, name, value) {
		json_t *own = json_is_array(value) ? NULL : any_value(value);

		if (own)
			add_attribute(attributes, name, own);
	}
	return attributes;
}

static json_t *resource_of(const struct stream *stream, const struct otlp *otlp)
{
	json_t *resource = otlp_resource(stream, otlp_context_of(&otlp->contexts, 0, otlp->began));
	json_t *attributes = attributes_of(resource);

	json_decref(resource);
	return json_pack("{s:o}", "attributes", attributes);
}

/* --- points ----------------------------------------------------------------------------------- */

static json_t *histogram_point(json_t *point, const struct meter_series *series)
{
	json_t *buckets = json_array(), *bounds = json_array();

	for (int i = 0; i < METER_BUCKETS; i++) {
		json_array_append_new(buckets, whole(series->buckets[i]));
		/* OTLP's bounds are inclusive, and latencies are integers. */
		if (i < METER_BUCKETS - 1)
			json_array_append_new(bounds, json_real((2UL << i) - 1));
	}
	json_object_set_new(point, "count", whole(series->count));
	json_object_set_new(point, "sum", json_real(series->sum));
	json_object_set_new(point, "bucketCounts", buckets);
	json_object_set_new(point, "explicitBounds", bounds);
	return point;
}

struct interval {
	__u64 since, until;
};

/* A stream of cumulative points keeps its start (OpenTelemetry's data model, "Resets and gaps"), whatever
 * begins earlier meanwhile; one that was forgotten and begins again has another one. */
static struct interval whole_interval(const struct otlp *otlp, struct meter_series *series)
{
	if (!series->begun)
		series->begun = otlp->since;
	return (struct interval){series->begun, otlp->until};
}

/* Points of delta follow one another: what a line has of other activities, with other intervals, is no part
 * of theirs. Two clocks that are read in turns miss by some ns. What has no interval of its own has the time
 * since it was last written. */
static struct interval last_interval(const struct otlp *otlp, struct meter_series *series)
{
	struct interval last = {series->from, series->until};

	if (!last.since) {
		last.until = otlp->until > series->told ? otlp->until : series->told;
		last.since = series->told ? series->told : otlp->since;
	}
	if (last.since < series->told && series->told - last.since < CLOCKS_APART_NS)
		last.since = series->told;
	series->told = last.until;
	return last;
}

static json_t *point_of(const struct otlp *otlp, const struct meter *meter, struct meter_series *series)
{
	struct interval interval = otlp->cumulative && meter->kind != METER_GAUGE
					   ? whole_interval(otlp, series)
					   : last_interval(otlp, series);
	json_t *point =
		json_pack("{s:o, s:o, s:o}", "attributes", attributes_of(series->labels), "startTimeUnixNano",
			  whole(interval.since), "timeUnixNano", whole(interval.until));

	if (meter->kind == METER_HISTOGRAM)
		return histogram_point(point, series);
	if (meter->kind == METER_COUNTER && meter->whole)
		json_object_set_new(point, "asInt", whole(series->count));
	else
		json_object_set_new(point, "asDouble", json_real(series->number));
	return point;
}

static json_t *points_of(const struct otlp *otlp, const struct meter *meter)
{
	json_t *points = json_array();

	for (size_t i = 0; i < meter->nr; i++)
		if (meter->series[i].set)
			json_array_append_new(points, point_of(otlp, meter, &meter->series[i]));
	return points;
}

/* OpenTelemetry's syntax of an instrument's name has no ':', which a metric of one side has ("ipc:u"). */
static json_t *otlp_name(const char *name)
{
	char *allowed = xasprintf("nhmtap.%s", name);
	json_t *value;

	for (char *c = allowed; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("_.-/", *c))
			*c = '_';
	value = json_string(allowed);
	free(allowed);
	return value;
}

static json_t *otlp_metric(const struct otlp *otlp, const struct meter *meter, json_t *points)
{
	json_t *metric = json_pack("{s:o, s:s, s:s}", "name", otlp_name(meter->name), "description",
				   meter->help, "unit", meter->unit);
	json_t *data = json_pack("{s:o}", "dataPoints", points);

	if (meter->kind == METER_GAUGE) {
		json_object_set_new(metric, "gauge", data);
		return metric;
	}
	json_object_set_new(data, "aggregationTemporality",
			    json_integer(otlp->cumulative ? TEMPORALITY_CUMULATIVE : TEMPORALITY_DELTA));
	if (meter->kind == METER_COUNTER)
		json_object_set_new(data, "isMonotonic", json_true());
	json_object_set_new(metric, meter->kind == METER_COUNTER ? "sum" : "histogram", data);
	return metric;
}

/* The metrics, without the one that has the program's version, which the scope has. */
static json_t *metrics_of(const struct otlp *otlp)
{
	json_t *metrics = json_array();

	for (const struct meter *meter = otlp->meters->families; meter; meter = meter->next) {
		json_t *points = meter->kind == METER_INFO ? json_array() : points_of(otlp, meter);

		if (json_array_size(points))
			json_array_append_new(metrics, otlp_metric(otlp, meter, points));
		else
			json_decref(points);
	}
	return metrics;
}

/* --- the format ------------------------------------------------------------------------------- */

static struct otlp *otlp_of(struct stream *stream)
{
	struct otlp *otlp = stream->own;

	if (otlp)
		return otlp;
	otlp = stream->own = xcalloc(1, sizeof(*otlp));
	otlp->meters = meters_new(stream->series);
	otlp->cumulative = stream->place.cumulative;
	return otlp;
}

static int take(struct stream *stream, const json_t *record)
{
	struct otlp *otlp = otlp_of(stream);
	__u64 since = moment(record, "start_time"), until = since + integer(record, "duration_ns");

	if (otlp_take_context(&otlp->contexts, record))
		return 0;
	if (since && (!otlp->since || since < otlp->since))
		otlp->since = since;
	if (since && (!otlp->began || stream->began_ns < otlp->began))
		otlp->began = stream->began_ns;
	if (since && until > otlp->until)
		otlp->until = until;
	otlp->records += meters_take(otlp->meters, stream->activity, &stream->calls, record);
	return 0;
}

/* Writes what was gathered, or nothing if no record had any metrics. */
static int put_metrics(struct stream *stream)
{
	struct otlp *otlp = otlp_of(stream);
	struct compact *line = &stream->line;
	json_t *data;
	int err;

	if (!otlp->records)
		return 0;
	if (!otlp->until)
		otlp->since = otlp->until = clock_ns(CLOCK_REALTIME);
	meters_take_self(otlp->meters);
	data = json_pack("{s:[{s:o, s:[{s:{s:s, s:s}, s:o}]}]}", "resourceMetrics", "resource",
			 resource_of(stream, otlp), "scopeMetrics", "scope", "name", "nhmtap", "version",
			 NHMTAP_VERSION, "metrics", metrics_of(otlp));
	line->used = 0;
	compact_add_value(line, data);
	compact_add(line, "\n", 1);
	json_decref(data);
	err = sink_put(&stream->sink, line->text, line->used);
	otlp->records = 0;
	if (otlp->cumulative) {
		meters_clear_gauges(otlp->meters);
		return err;
	}
	meters_begin_anew(otlp->meters);
	otlp->since = otlp->until = otlp->began = 0;
	return err;
}

static void begin_anew(struct stream *stream, const char *activity, const char *event)
{
	put_metrics(stream); /* what the other one has counted */
	meters_forget_event(otlp_of(stream)->meters, activity, event);
}

static void release(struct stream *stream)
{
	struct otlp *otlp = stream->own;

	if (!otlp)
		return;
	meters_release(otlp->meters);
	otlp_contexts_release(&otlp->contexts);
	free(otlp);
}

static const struct format otlp = {
	.name = "otlp",
	.help = "OpenTelemetry's metrics as OTLP/JSON: lines, or requests to http://HOST:PORT/v1/metrics",
	.measured = true,
	.texts = true,
	.numbered = true,
	.resources = true,
	.series = true,
	.temporality = true,
	.write = take,
	.finish = put_metrics,
	.media = "application/json",
	.halve = otlp_halve,
	.begin_anew = begin_anew,
	.release = release,
};
REGISTER_FORMAT(otlp);
