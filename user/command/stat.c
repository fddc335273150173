// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap stat: counts. */
#include <math.h>
#include <stdlib.h>

#include "command/command.h"
#include "record/record.h"
#include "run/run.h"

/* Running mean and sum of squared differences of the values of repeated executions: Welford's
 * method, which loses no digits to large values. */
struct moments {
	__u64 n;
	double mean, squares, least, most;
};

struct stat {
	struct count *before;    /* an event: the reading before this one */
	struct moments *moments; /* an event, over executions */
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

	stat->before = calloc(run->plan.events.nr, sizeof(*stat->before));
	stat->moments = calloc(run->plan.events.nr, sizeof(*stat->moments));
	run->state = stat;
	return 0;
}

static void stat_describe(struct run *run, json_t *start)
{
	if (run->options->repeats)
		json_object_set_new(start, "repeats", json_integer(run->options->repeats));
}

/* What the count would be had the event run all the time that it was enabled; an estimate. */
static double scaled(const struct count *count)
{
	return (double)count->value * count->enabled_ns / count->running_ns;
}

static json_t *scaled_value(const struct count *count)
{
	return count->running_ns == count->enabled_ns ? json_integer(count->value)
						      : json_integer(llround(scaled(count)));
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
					    value_real(scaled(count) * event->scale));
	}
	run_put_interval(run, record);
	if (run->options->repeats)
		json_object_set_new(record, "repeat", json_integer(run->repeat));
	return record;
}

static int stat_report(struct run *run, bool last)
{
	struct stat *stat = run->state;
	int err = 0;

	for (size_t i = 0; i < run->plan.events.nr; i++) {
		const struct event *event = &run->plan.events.list[i];
		struct count now, since;

		/* A pinned event that never ran can't be read: it stays at zero, not counted. */
		if (counters_read(run->counters, i, &now))
			now = stat->before[i];
		since = (struct count){now.value - stat->before[i].value,
				       now.enabled_ns - stat->before[i].enabled_ns,
				       now.running_ns - stat->before[i].running_ns};
		stat->before[i] = now;
		if (last && now.running_ns)
			moments_add(&stat->moments[i], scaled(&now));
		err = stream_write(&run->stream, count_record(run, event, &since), NULL, NULL);
	}
	return err;
}

/* The next execution's counters begin at zero. */
static void stat_detach(struct run *run)
{
	struct stat *stat = run->state;

	for (size_t i = 0; i < run->plan.events.nr; i++)
		stat->before[i] = (struct count){0};
}

static json_t *summary_record(const struct run *run, const struct event *event,
			      const struct moments *moments)
{
	json_t *record = json_pack("{s:s}", "type", "summary");
	double variance = moments->n > 1 ? moments->squares / (moments->n - 1) : NAN;

	json_object_set_new(record, "event", value_text(event->name, sizeof(event->name)));
	if (event->unit[0])
		json_object_set_new(record, "unit", value_text(event->unit, sizeof(event->unit)));
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
	struct stat *stat = run->state;
	int err = 0;

	if (!stat || !run->options->repeats || !run->began.tv_sec)
		return 0;
	for (size_t i = 0; i < run->plan.events.nr && !err; i++)
		err = stream_write(&run->stream,
				   summary_record(run, &run->plan.events.list[i], &stat->moments[i]),
				   NULL, NULL);
	return err;
}

static void stat_release(struct run *run)
{
	struct stat *stat = run->state;

	if (!stat)
		return;
	free(stat->before);
	free(stat->moments);
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
