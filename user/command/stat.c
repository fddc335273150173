// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap stat: counts. */
#include <math.h>
#include <stdlib.h>

#include "command/command.h"
#include "record/metric.h"
#include "record/record.h"
#include "run/run.h"

/* Of names and units in records, in bytes. */
#define NAME_MOST 200

/* Running mean and sum of squared differences of the values of repeated executions: Welford's
 * method, which loses no digits to large values. */
struct moments {
	__u64 n;
	double mean, squares, least, most;
};

struct stat {
	struct count *now;        /* an event: of this execution, so far */
	struct count *since;      /* an event: since the reading before */
	__u64 duration_ns;        /* of this execution, so far */
	struct moments *moments;  /* an event, over executions */
	struct moments *derived;  /* a metric, over executions */
};

static void moments_add(struct moments *moments, double value)
{
	double delta = value - moments->mean;

	moments->n++;
	moments->mean += delta / moments->n;
	moments->squares += delta * (value - moments->mean);
	moments->least = moments->n == 1 ? value : fmin(moments->least, value);
	moments->most = moments->n == 1 ? value : fmax(moments->most, value);
}

static int stat_check(struct run *run, struct refusal *refusal)
{
	struct stat *stat = calloc(1, sizeof(*stat));

	stat->now = calloc(run->plan.events.nr, sizeof(*stat->now));
	stat->since = calloc(run->plan.events.nr, sizeof(*stat->since));
	stat->moments = calloc(run->plan.events.nr, sizeof(*stat->moments));
	stat->derived = calloc(run->plan.metrics.nr + 1, sizeof(*stat->derived));
	run->state = stat;
	return 0;
}

static void stat_describe(struct run *run, json_t *start)
{
	if (run->options->repeats)
		json_object_set_new(start, "repeats", json_integer(run->options->repeats));
}

static json_t *scaled_value(const struct count *count)
{
	return count->running_ns == count->enabled_ns ? json_integer(count->value)
						      : json_integer(llround(count_scaled(count)));
}

static const char *count_status(const struct count *count)
{
	if (!count->running_ns)
		return "not_counted";
	return count->running_ns < count->enabled_ns ? "multiplexed" : "counted";
}

/* Why there is no count, as far as the times tell. */
static const char *why_not_counted(const struct count *count)
{
	return count->enabled_ns ? "it never got a counter: others held those that it can use, or the "
				   "register that it shares with the core's other thread"
				 : "its target never ran";
}

static json_t *count_record(const struct run *run, const struct event *event,
			    const struct count *count)
{
	json_t *record = json_pack("{s:s}", "type", "count");

	json_object_set_new(record, "event", value_text(event->name, sizeof(event->name)));
	json_object_set_new(record, "status", json_string(count_status(count)));
	if (!count->running_ns)
		json_object_set_new(record, "why", json_string(why_not_counted(count)));
	json_object_set_new(record, "value", json_integer(count->value));
	json_object_set_new(record, "enabled_ns", json_integer(count->enabled_ns));
	json_object_set_new(record, "running_ns", json_integer(count->running_ns));
	if (count->running_ns)
		json_object_set_new(record, "scaled", scaled_value(count));
	if (event->unit[0]) {
		json_object_set_new(record, "unit", value_text(event->unit, sizeof(event->unit)));
		if (event->scale != 1 && count->running_ns)
			json_object_set_new(record, "value_in_unit",
					    value_real(count_scaled(count) * event->scale));
	}
	run_put_interval(run, record);
	if (run->options->repeats)
		json_object_set_new(record, "repeat", json_integer(run->repeat));
	return record;
}

static void read_counts(struct run *run)
{
	struct stat *stat = run->state;

	for (size_t i = 0; i < run->plan.events.nr; i++) {
		struct count now, *last = &stat->now[i];

		/* A pinned event that never ran can't be read: it stays at zero, not counted. */
		if (counters_read(run->counters, i, &now))
			now = *last;
		stat->since[i] = (struct count){now.value - last->value,
						now.enabled_ns - last->enabled_ns,
						now.running_ns - last->running_ns};
		*last = now;
	}
	stat->duration_ns += run_interval_ns(run);
}

static int report_metric(struct run *run, const struct metric *metric)
{
	const struct stat *stat = run->state;
	const struct events *events = &run->plan.events;
	struct metric_input *inputs =
		metric_inputs(metric, events, stat->since, run_interval_ns(run));
	json_t *record = metric_record(metric, events, inputs);

	free(inputs);
	run_put_interval(run, record);
	if (run->options->repeats)
		json_object_set_new(record, "repeat", json_integer(run->repeat));
	return stream_write(&run->stream, record, "inputs", NULL);
}

/* The whole execution adds to the summary: whatever intervals it was reported in. */
static void summarize(struct run *run)
{
	struct stat *stat = run->state;

	for (size_t i = 0; i < run->plan.events.nr; i++)
		if (stat->now[i].running_ns)
			moments_add(&stat->moments[i], count_scaled(&stat->now[i]));
	for (size_t i = 0; i < run->plan.metrics.nr; i++) {
		const struct metric *metric = &run->plan.metrics.list[i];
		struct metric_input *inputs =
			metric_inputs(metric, &run->plan.events, stat->now, stat->duration_ns);
		double value;

		if (!metric_value(metric, inputs, &value, NULL, 0))
			moments_add(&stat->derived[i], value);
		free(inputs);
	}
}

static int stat_report(struct run *run, bool last)
{
	const struct stat *stat = run->state;
	int err = 0;

	read_counts(run);
	for (size_t i = 0; i < run->plan.events.nr && !err; i++)
		err = stream_write(&run->stream,
				   count_record(run, &run->plan.events.list[i], &stat->since[i]), NULL,
				   NULL);
	for (size_t i = 0; i < run->plan.metrics.nr && !err; i++)
		err = report_metric(run, &run->plan.metrics.list[i]);
	if (last)
		summarize(run);
	return err;
}

/* The next execution's counters begin at zero. */
static void stat_detach(struct run *run)
{
	struct stat *stat = run->state;

	for (size_t i = 0; i < run->plan.events.nr; i++)
		stat->now[i] = (struct count){0};
	stat->duration_ns = 0;
}

/* kind: "event" or "metric", whose name and unit these are. */
static json_t *summary_record(const struct run *run, const char *kind, const char *name,
			      const char *unit, const struct moments *moments)
{
	json_t *record = json_pack("{s:s}", "type", "summary");
	double variance = moments->n > 1 ? moments->squares / (moments->n - 1) : NAN;

	json_object_set_new(record, kind, value_text(name, NAME_MOST));
	if (unit[0])
		json_object_set_new(record, "unit", value_text(unit, NAME_MOST));
	json_object_set_new(record, "executions", json_integer(run->repeat));
	json_object_set_new(record, "counted", json_integer(moments->n));
	if (!moments->n)
		return record;
	json_object_set_new(record, "mean", value_real(moments->mean));
	json_object_set_new(record, "min", value_real(moments->least));
	json_object_set_new(record, "max", value_real(moments->most));
	if (moments->n > 1) { /* of one value there is no variance */
		json_object_set_new(record, "variance", value_real(variance));
		json_object_set_new(record, "stddev", value_real(sqrt(variance)));
		json_object_set_new(record, "stddev_of_mean", value_real(sqrt(variance / moments->n)));
	}
	return record;
}

static int stat_finish(struct run *run, json_t *end)
{
	const struct stat *stat = run->state;
	int err = 0;

	if (!stat || !run->options->repeats || !run->began.tv_sec)
		return 0;
	for (size_t i = 0; i < run->plan.events.nr && !err; i++) {
		const struct event *event = &run->plan.events.list[i];

		err = stream_write(&run->stream, summary_record(run, "event", event->name, event->unit,
								&stat->moments[i]), NULL, NULL);
	}
	for (size_t i = 0; i < run->plan.metrics.nr && !err; i++) {
		const struct metric *metric = &run->plan.metrics.list[i];

		err = stream_write(&run->stream,
				   summary_record(run, "metric", metric->name, metric->known->unit,
						  &stat->derived[i]), NULL, NULL);
	}
	return err;
}

static void stat_release(struct run *run)
{
	struct stat *stat = run->state;

	if (!stat)
		return;
	free(stat->now);
	free(stat->since);
	free(stat->moments);
	free(stat->derived);
	free(stat);
}

int command_stat(const struct options *options, struct refusal *refusal)
{
	static const struct activity activity = {
		.command = "stat",
		.plan = plan_stat,
		.check = stat_check,
		.describe = stat_describe,
		.report = stat_report,
		.detach = stat_detach,
		.finish = stat_finish,
		.release = stat_release,
	};

	return run_activity(&activity, options, refusal);
}
