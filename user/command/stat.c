// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap stat: counts. */
#include <math.h>
#include <stdlib.h>

#include "command/command.h"
#include "record/metric.h"
#include "record/record.h"
#include "run/run.h"
#include "run/tally.h"

/* Of names and units in records, in bytes. */
#define NAME_MOST 200

/* Running mean and sum of squared differences of the values of repeated executions: Welford's
 * method, which loses no digits to large values. */
struct moments {
	__u64 n;
	double mean, squares, least, most;
};

struct stat {
	struct tally tally;       /* now: of this execution, so far */
	__u64 duration_ns;        /* of this execution, so far */
	/* Of each row of the tally, over executions: */
	struct summary {
		struct moments *events, *metrics;
	} *summaries;
	size_t nr_summaries;
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

	tally_begin(&stat->tally, &run->plan, &run->host);
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
static const char *why_not_counted(const struct run *run, const struct count *count)
{
	const struct target *target = &run->plan.target;

	return count->enabled_ns ? "it never got a counter: others held those that it can use, or the "
				   "register that it shares with the core's other thread"
	       : target->cpus_given && !target->nr_cgroups ? "its CPU was offline"
							   : "its target never ran";
}

static json_t *count_record(const struct run *run, const struct event *event,
			    const struct tally_row *row, const struct count *count)
{
	const struct stat *stat = run->state;
	json_t *record = json_pack("{s:s}", "type", "count");

	json_object_set_new(record, "event", value_text(event->name, sizeof(event->name)));
	tally_put(record, &stat->tally, row);
	json_object_set_new(record, "status", json_string(count_status(count)));
	if (!count->running_ns)
		json_object_set_new(record, "why", json_string(why_not_counted(run, count)));
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
	run_put_missing(run, record, &row->cpus);
	if (run->options->repeats)
		json_object_set_new(record, "repeat", json_integer(run->repeat));
	return record;
}

static int report_metric(struct run *run, const struct metric *metric, const struct tally_row *row)
{
	const struct stat *stat = run->state;
	const struct events *events = &run->plan.events;
	struct metric_input *inputs =
		metric_inputs(metric, events, row->since, run_interval_ns(run));
	json_t *record = metric_record(metric, events, inputs);

	free(inputs);
	tally_put(record, &stat->tally, row);
	run_put_interval(run, record);
	run_put_missing(run, record, &row->cpus);
	if (run->options->repeats)
		json_object_set_new(record, "repeat", json_integer(run->repeat));
	return stream_write(&run->stream, record, "inputs", NULL);
}

static void add_summaries(struct stat *stat, const struct plan *plan)
{
	stat->summaries = realloc(stat->summaries, stat->tally.nr * sizeof(*stat->summaries));
	for (; stat->nr_summaries < stat->tally.nr; stat->nr_summaries++)
		stat->summaries[stat->nr_summaries] = (struct summary){
			calloc(plan->events.nr, sizeof(struct moments)),
			calloc(plan->metrics.nr + 1, sizeof(struct moments)),
		};
}

/* The whole execution adds to the summary: whatever intervals it was reported in. */
static void summarize(const struct run *run, const struct tally_row *row, struct summary *summary)
{
	const struct stat *stat = run->state;

	for (size_t i = 0; i < run->plan.events.nr; i++)
		if (row->now[i].running_ns)
			moments_add(&summary->events[i], count_scaled(&row->now[i]));
	for (size_t i = 0; i < run->plan.metrics.nr; i++) {
		const struct metric *metric = &run->plan.metrics.list[i];
		struct metric_input *inputs =
			metric_inputs(metric, &run->plan.events, row->now, stat->duration_ns);
		double value;

		if (!metric_value(metric, inputs, &value, NULL, 0))
			moments_add(&summary->metrics[i], value);
		free(inputs);
	}
}

static int report_row(struct run *run, const struct tally_row *row)
{
	int err = 0;

	for (size_t i = 0; i < run->plan.events.nr && !err; i++)
		if (row->has[i])
			err = stream_write(&run->stream,
					   count_record(run, &run->plan.events.list[i], row,
							&row->since[i]), NULL, NULL);
	for (size_t i = 0; i < run->plan.metrics.nr && !err; i++)
		err = report_metric(run, &run->plan.metrics.list[i], row);
	return err;
}

static int stat_report(struct run *run, bool last)
{
	struct stat *stat = run->state;
	int err = 0;

	tally_read(&stat->tally, run->counters);
	stat->duration_ns += run_interval_ns(run);
	for (size_t r = 0; r < stat->tally.nr && !err; r++)
		err = report_row(run, &stat->tally.rows[r]);
	if (!last)
		return err;
	add_summaries(stat, &run->plan);
	for (size_t r = 0; r < stat->tally.nr; r++)
		summarize(run, &stat->tally.rows[r], &stat->summaries[r]);
	return err;
}

/* The next execution's counters begin at zero. */
static void stat_detach(struct run *run)
{
	struct stat *stat = run->state;

	tally_restart(&stat->tally);
	stat->duration_ns = 0;
}

/* kind: "event" or "metric", whose name and unit these are. */
static json_t *summary_record(const struct run *run, const struct tally_row *row, const char *kind,
			      const char *name, const char *unit, const struct moments *moments)
{
	const struct stat *stat = run->state;
	json_t *record = json_pack("{s:s}", "type", "summary");
	double variance = moments->n > 1 ? moments->squares / (moments->n - 1) : NAN;

	json_object_set_new(record, kind, value_text(name, NAME_MOST));
	tally_put(record, &stat->tally, row);
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

static int write_summary(struct run *run, size_t r)
{
	const struct stat *stat = run->state;
	const struct tally_row *row = &stat->tally.rows[r];
	const struct summary *summary = &stat->summaries[r];
	int err = 0;

	for (size_t i = 0; i < run->plan.events.nr && !err; i++) {
		const struct event *event = &run->plan.events.list[i];

		if (row->has[i])
			err = stream_write(&run->stream,
					   summary_record(run, row, "event", event->name, event->unit,
							  &summary->events[i]), NULL, NULL);
	}
	for (size_t i = 0; i < run->plan.metrics.nr && !err; i++) {
		const struct metric *metric = &run->plan.metrics.list[i];

		err = stream_write(&run->stream,
				   summary_record(run, row, "metric", metric->name,
						  metric->known->unit, &summary->metrics[i]),
				   NULL, NULL);
	}
	return err;
}

static int stat_finish(struct run *run, json_t *end)
{
	const struct stat *stat = run->state;
	int err = 0;

	if (!stat || !run->options->repeats || !run->began.tv_sec)
		return 0;
	for (size_t r = 0; r < stat->nr_summaries && !err; r++)
		err = write_summary(run, r);
	return err;
}

static void stat_release(struct run *run)
{
	struct stat *stat = run->state;

	if (!stat)
		return;
	tally_release(&stat->tally);
	for (size_t r = 0; r < stat->nr_summaries; r++) {
		free(stat->summaries[r].events);
		free(stat->summaries[r].metrics);
	}
	free(stat->summaries);
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
