// SPDX-License-Identifier: GPL-2.0-only
/* A page of OpenMetrics 1.0 text, or of the Prometheus text format 0.0.4 before it, which node exporter's
 * textfile folder and promtool read. The page has all counts since the run began. */
#include <stdlib.h>
#include <string.h>

#include "output/meters.h"
#include "output/output.h"
#include "output/text.h"

/* --- lines ------------------------------------------------------------------------------------ */

/* `quoted`: '"' is escaped, too. The format before OpenMetrics takes that for an error in HELP, which has no
 * quotes. */
static void add_escaped(struct text *page, const char *value, bool quoted)
{
	for (; *value; value++) {
		const char *escaped = *value == '\\'		? "\\\\"
				      : *value == '"' && quoted ? "\\\""
				      : *value == '\n'		? "\\n"
								: NULL;

		if (escaped)
			text_add(page, "%s", escaped);
		else
			text_add(page, "%c", *value);
	}
}

static void add_label(struct text *page, const char *name, const json_t *value, const char **before)
{
	text_add(page, "%s", *before);
	*before = ",";
	meter_add_words(page, name);
	text_add(page, "=\"");
	if (json_is_string(value))
		add_escaped(page, json_string_value(value), true);
	else if (json_is_integer(value))
		text_add(page, "%lld", (long long)json_integer_value(value));
	else
		text_add(page, "%s", json_is_true(value) ? "true" : "false");
	text_add(page, "\"");
}

/* The labels as `a="1",b="2"`. They are made once and kept in the series. */
static const char *labels_of(struct meter_series *series)
{
	struct text text = {0};
	const char *before = "", *name;
	json_t *value;

	if (series->text)
		return series->text;
	text_add(&text, "%s", "");
	json_object_foreach(series->labels, name, value)
		add_label(&text, name, value, &before);
	return series->text = text.bytes;
}

/* Adds a line. `bound` is the upper bound of a histogram's bucket; "" for any other line. */
static void add_line(struct text *page, const char *name, const char *behind, struct meter_series *series,
		     const char *bound, __u64 count)
{
	const char *labels = labels_of(series);
	bool any = *labels || *bound;

	text_add(page, "%s%s%s%s%s%s%s %llu\n", name, behind, any ? "{" : "", labels,
		 *labels && *bound ? "," : "", bound, any ? "}" : "", count);
}

static void add_histogram(struct text *page, const char *name, struct meter_series *series)
{
	__u64 below = 0;
	char bound[32];

	/* Latencies are integers, so less than 2^(i+1) is the same as at most 2^(i+1) - 1. */
	for (int i = 0; i < METER_BUCKETS - 1; i++) {
		below += series->buckets[i];
		snprintf(bound, sizeof(bound), "le=\"%lu.0\"", (2UL << i) - 1);
		add_line(page, name, "_bucket", series, bound, below);
	}
	add_line(page, name, "_bucket", series, "le=\"+Inf\"", series->count);
	add_line(page, name, "_sum", series, "", series->sum);
	add_line(page, name, "_count", series, "", series->count);
}

/* The suffix that a sample's name has beyond the name of its family. */
static const char *suffix_of(const struct meter *family)
{
	return family->kind == METER_COUNTER ? "_total" : family->kind == METER_INFO ? "_info" : "";
}

static void add_series(struct text *page, const struct meter *family, const char *name,
		       struct meter_series *series)
{
	const char *behind = suffix_of(family);
	const char *labels = labels_of(series);

	if (family->kind == METER_HISTOGRAM)
		add_histogram(page, name, series);
	else if (family->kind == METER_INFO || family->whole)
		add_line(page, name, behind, series, "", family->kind == METER_INFO ? 1 : series->count);
	else
		text_add(page, "%s%s%s%s%s %.15g\n", name, behind, *labels ? "{" : "", labels,
			 *labels ? "}" : "", series->number);
}

/* --- the page --------------------------------------------------------------------------------- */

/* Adds a family. In the format before OpenMetrics (`before`), HELP and TYPE take the complete name of the
 * samples, suffix included. */
static void add_family(struct text *page, const struct meter *family, bool before)
{
	static const char *const kinds[] = {"counter", "gauge", "histogram", "info"};
	char *name = meter_full_name(family->name, family->unit);
	const char *behind = before ? suffix_of(family) : "";

	text_add(page, "# HELP %s%s ", name, behind);
	add_escaped(page, family->help, !before);
	text_add(page, "\n# TYPE %s%s %s\n", name, behind,
		 before && family->kind == METER_INFO ? "gauge" : kinds[family->kind]);
	if (*family->unit && !before) {
		text_add(page, "# UNIT %s ", name);
		meter_add_words(page, family->unit);
		text_add(page, "\n");
	}
	for (size_t i = 0; i < family->nr; i++)
		if (family->series[i].set)
			add_series(page, family, name, &family->series[i]);
	free(name);
}

static bool any_set(const struct meter *family)
{
	for (size_t i = 0; i < family->nr; i++)
		if (family->series[i].set)
			return true;
	return false;
}

static struct meters *meters_of(struct stream *stream)
{
	if (!stream->own)
		stream->own = meters_new(stream->series);
	return stream->own;
}

static void add_page(struct stream *stream, struct text *page, bool before)
{
	struct meters *meters = meters_of(stream);

	meters_take_self(meters);
	meters_take_host(meters, stream->start);
	for (const struct meter *family = meters->families; family; family = family->next)
		if (any_set(family))
			add_family(page, family, before);
	if (!before)
		text_add(page, "# EOF\n");
}

static void add_openmetrics(struct stream *stream, struct text *page)
{
	add_page(stream, page, false);
}

static void add_prometheus(struct stream *stream, struct text *page)
{
	add_page(stream, page, true);
}

/* --- the format ------------------------------------------------------------------------------- */

static int take(struct stream *stream, const json_t *record)
{
	meters_take(meters_of(stream), stream->activity, &stream->calls, record);
	return 0;
}

static int put_page(struct stream *stream)
{
	struct text page = {0};
	int err;

	stream->format->page(stream, &page);
	err = sink_put(&stream->sink, page.bytes, page.used);
	free(page.bytes);
	return err;
}

static void begin_anew(struct stream *stream, const char *activity, const char *event)
{
	meters_forget_event(meters_of(stream), activity, event);
}

static void release(struct stream *stream)
{
	meters_release(stream->own);
}

static const struct format openmetrics = {
	.name = "openmetrics",
	.help = "a page of counters and gauges: a file, replaced as a whole, or /metrics of --listen",
	.measured = true,
	.texts = true,
	.numbered = true,
	.replaces = true,
	.series = true,
	.write = take,
	.finish = put_page,
	.page = add_openmetrics,
	.media = "application/openmetrics-text; version=1.0.0; charset=utf-8",
	.begin_anew = begin_anew,
	.release = release,
};
REGISTER_FORMAT(openmetrics);

static const struct format prometheus = {
	.name = "prometheus",
	.help = "what openmetrics has, in the older form of Prometheus, for node exporter's textfile folder",
	.measured = true,
	.texts = true,
	.numbered = true,
	.replaces = true,
	.series = true,
	.write = take,
	.finish = put_page,
	.page = add_prometheus,
	.media = "text/plain; version=0.0.4; charset=utf-8",
	.begin_anew = begin_anew,
	.release = release,
};
REGISTER_FORMAT(prometheus);
