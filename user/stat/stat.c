// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap stat: counts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "activity/activity.h"
#include "activity/doubt.h"
#include "activity/missing.h"
#include "activity/tally.h"
#include "activity/uncounted.h"
#include "activity/why.h"
#include "base/clock.h"
#include "base/memory.h"
#include "metric/moments.h"
#include "option/command.h"
#include "output/rows.h"
#include "record/bound.h"
#include "record/record.h"
#include "record/type.h"
#include "stat/expectation_record.h"
#include "stat/metric_record.h"
#include "stat/plan.h"

/* Limit of names and units in records, in bytes. */
#define NAME_MOST 200

struct counting {
	__u64 switches, switches_missed; /* switches between cgroups, if those are counted by switches */
	json_t **names, **units;	 /* those of the records, one per event */
	struct tally tally;		 /* `now` in it: this execution so far */
	__u64 duration_ns;		 /* this execution so far */
	char start_time[TIME_TEXT];	 /* start of the interval that is reported */
	/* For each row of the tally, over all executions: */
	struct summary {
		struct moments *events, *metrics;
	} * summaries;
	size_t nr_summaries;
	struct uncounted uncounted;
};

static int stat_check(struct activity *activity, struct refusal *refusal)
{
	struct counting *stat = xcalloc(1, sizeof(*stat));

	tally_begin(&stat->tally, &activity->plan, &activity->session->host);
	activity->drain_ns = stat->tally.span_ns;
	stat->names = xcalloc(activity->plan.events.nr + 1, sizeof(*stat->names));
	stat->units = xcalloc(activity->plan.events.nr + 1, sizeof(*stat->units));
	for (size_t i = 0; i < activity->plan.events.nr; i++) {
		const struct event *event = &activity->plan.events.list[i];

		stat->names[i] = value_text(event->name, sizeof(event->name));
		stat->units[i] = value_text(event->unit, sizeof(event->unit));
	}
	activity->state = stat;
	return 0;
}

/* See cgroup_switches.h. */
#define MOVED                                                                                                \
	"a task that is moved while it runs takes along to its new cgroup what its CPU has counted since "   \
	"it "                                                                                                \
	"last went over from one cgroup to another, unless it moves itself"

static void stat_describe(struct activity *activity, json_t *start)
{
	json_t *by;

	if (activity->options->repeats)
		json_object_set_new(start, "repeats", json_integer(activity->options->repeats));
	/* With --check, none are opened. */
	if (!activity->plan.target.by_switches || !activity->counters)
		return;
	by = json_pack("{s:s}", "by", counters_by_switches(activity->counters) ? "switches" : "events");
	if (counters_switches_why(activity->counters))
		json_object_set_new(by, "why", json_string(counters_switches_why(activity->counters)));
	if (counters_by_switches(activity->counters))
		json_object_set_new(by, "moved", json_string(MOVED));
	json_object_set_new(start, "cgroups_counted", by);
}

static void stat_want(const struct activity *activity, struct limits *limits)
{
	size_t bytes = activity->plan.target.by_switches
			       ? cgroup_switches_bytes(activity->plan.events.nr, &activity->session->host)
			       : 0;

	limits_want(limits, MEMORY_TABLES, bytes, bytes);
}

static void put_string(struct fields *fields, const char *name, const json_t *string)
{
	fields_text(fields, name, json_string_value(string), json_string_length(string));
}

/* The metric that is reported with this event; NULL: none. */
static const struct metric *explains(const struct activity *activity, size_t i)
{
	for (size_t m = 0; m < activity->plan.metrics.nr; m++)
		if (activity->plan.metrics.list[m].explains == i)
			return &activity->plan.metrics.list[m];
	return NULL;
}

static int report_count(struct activity *activity, size_t i, const struct tally_row *row)
{
	const struct metric *metric = explains(activity, i);
	const struct counting *stat = activity->state;
	const struct event *event = &activity->plan.events.list[i];
	const struct count *count = &row->since[i];
	struct fields fields;
	char text[WHY_SIZE];
	const char *why;

	fields_begin(&fields);
	activity_add_event(&fields, event, stat->names[i]);
	if (metric)
		fields_text(&fields, "explained_by", metric->name, strlen(metric->name));
	tally_add(&fields, &stat->tally, row);
	why = why_not_counted(activity, i, count, text);
	if (why)
		fields_text(&fields, "why", why, strlen(why));
	add_count(&fields, &row->interval_turns, row->since, i);
	if (event->unit[0]) {
		put_string(&fields, "unit", stat->units[i]);
		if (event->scale != 1 && count->running_ns)
			fields_value(&fields, "value_in_unit",
				     value_real(count_scaled(count) * event->scale));
	}
	activity_add_interval(activity, &fields, stat->start_time);
	fields_value(&fields, "cpus_missing", activity_missing(activity, &row->cpus));
	fields_value(&fields, "cgroups_missing", activity_cgroups_missing(activity, row->key.cgroup));
	fields_value(&fields, "cgroups_late", activity_cgroups_late(activity, row->key.cgroup));
	if (activity->options->repeats)
		fields_number(&fields, "repeat", activity->session->repeat);
	return activity_write_fields(activity, "count", &fields);
}

/* The sums from which metrics of an interval, or of an execution, are computed. */
static struct metric_sums sums_of_interval(const struct activity *activity, const struct tally_row *row)
{
	return (struct metric_sums){row->since, &row->interval_turns, activity_interval_ns(activity),
				    activity};
}

static struct metric_sums sums_of_execution(const struct activity *activity, const struct tally_row *row)
{
	const struct counting *stat = activity->state;

	return (struct metric_sums){row->now, &row->turns, stat->duration_ns, activity};
}

static int report_metric(struct activity *activity, const struct metric *metric, const struct tally_row *row)
{
	const struct counting *stat = activity->state;
	struct metric_sums sums = sums_of_interval(activity, row);
	json_t *record = metric_record(metric, &activity->plan.events, &sums);

	if (metric->explains != NO_EVENT)
		json_object_set(record, "explains", stat->names[metric->explains]);
	tally_put(record, &stat->tally, row);
	activity_put_interval(activity, record);
	activity_put_missing(activity, record, &row->cpus, row->key.cgroup);
	if (activity->options->repeats)
		json_object_set_new(record, "repeat", json_integer(activity->session->repeat));
	return activity_write(activity, record);
}

static void add_summaries(struct counting *stat, const struct plan *plan)
{
	stat->summaries = xrealloc(stat->summaries, stat->tally.nr * sizeof(*stat->summaries));
	for (; stat->nr_summaries < stat->tally.nr; stat->nr_summaries++)
		stat->summaries[stat->nr_summaries] = (struct summary){
			xcalloc(plan->events.nr, sizeof(struct moments)),
			xcalloc(plan->metrics.nr + 1, sizeof(struct moments)),
		};
}

/* Adds a whole execution to the summary, regardless of the intervals in which it was reported. */
static void summarize(const struct activity *activity, const struct tally_row *row, struct summary *summary)
{
	for (size_t i = 0; i < activity->plan.events.nr; i++)
		if (row->now[i].running_ns)
			moments_add(&summary->events[i], count_scaled(&row->now[i]));
	for (size_t i = 0; i < activity->plan.metrics.nr; i++) {
		struct metric_sums sums = sums_of_execution(activity, row);
		double value;

		if (!metric_of(&activity->plan.metrics.list[i], &activity->plan.events, &sums, &value, NULL,
			       0))
			moments_add(&summary->metrics[i], value);
	}
}

/* --- expectations ----------------------------------------------------------------------------- */

static void find_metric(const struct activity *activity, const struct tally_row *row,
			const struct metric *metric, struct expected_finding *finding, char *why, size_t size)
{
	struct metric_sums sums = sums_of_execution(activity, row);

	finding->unit = metric->known->unit;
	finding->there = !metric_of(metric, &activity->plan.events, &sums, &finding->value, why, size) &&
			 !metric_bound(metric, &activity->plan.events, &sums, &finding->bound);
}

static void find_count(const struct activity *activity, const struct tally_row *row, size_t i,
		       struct expected_finding *finding, char why[WHY_SIZE])
{
	const struct event *event = &activity->plan.events.list[i];

	finding->unit = event->unit;
	finding->why = why_not_counted(activity, i, &row->now[i], why);
	finding->there = !finding->why;
	if (!finding->there)
		return;
	bound_of_count(&row->turns, row->now, i, &finding->bound);
	finding->value = count_scaled(&row->now[i]) * event->scale;
	finding->bound.low *= event->scale;
	finding->bound.high *= event->scale;
}

/* The time of the command, as in `end`, or of the counting if nhmtap didn't see it end. */
static void find_elapsed(const struct activity *activity, struct expected_finding *finding)
{
	const struct counting *stat = activity->state;
	const struct child *child = &activity->session->child;
	double ns = child->exited ? child->spent.elapsed_ns : stat->duration_ns;

	*finding = (struct expected_finding){
		.there = true, .value = ns, .bound = {.low = ns, .high = ns}, .unit = "ns"};
}

/* Says on stderr why the exit status is not 0. A table says it itself. */
static void say_outcome(const struct activity *activity, const json_t *record)
{
	const char *expected = json_string_value(json_object_get(record, "expectation"));
	const char *why = json_string_value(json_object_get(record, "why"));
	const char *unit = json_string_value(json_object_get(record, "unit"));
	char row[ROW_NAME_MAX];

	if (activity->options->quiet || session_all_people(activity->session))
		return;
	row_name(record, row, sizeof(row));
	if (why)
		activity_say(activity, "%s%scannot tell whether %s: %s", row, *row ? ": " : "", expected,
			     why);
	else
		activity_say(activity, "%s%sexpected %s: %.15g%s%s", row, *row ? ": " : "", expected,
			     json_number_value(json_object_get(record, "value")), unit ? " " : "",
			     unit ? unit : "");
}

/* The row is NULL if the expectation is of the elapsed time. */
static int report_expectation(struct activity *activity, const struct expectation *expectation,
			      const struct tally_row *row)
{
	const struct counting *stat = activity->state;
	char why[WHY_SIZE];
	struct expected_finding finding = {.why = why};
	enum outcome outcome;
	json_t *record;

	switch (expectation->of) {
	case OF_ELAPSED:
		find_elapsed(activity, &finding);
		break;
	case OF_METRIC:
		find_metric(activity, row, &activity->plan.metrics.list[expectation->place], &finding, why,
			    sizeof(why));
		break;
	case OF_EVENT:
		find_count(activity, row, expectation->place, &finding, why);
		break;
	}
	record = expectation_record(expectation, &finding, &outcome);
	if (row) {
		tally_put(record, &stat->tally, row);
		activity_put_missing(activity, record, &row->cpus, row->key.cgroup);
	}
	if (activity->options->repeats)
		json_object_set_new(record, "repeat", json_integer(activity->session->repeat));
	if (outcome != MET)
		say_outcome(activity, record);
	if (expectation_status(outcome) > activity->session->verdict)
		activity->session->verdict = expectation_status(outcome);
	return activity_write(activity, record);
}

static bool is_of_row(const struct expectation *expectation, const struct tally_row *row)
{
	return expectation->of == OF_METRIC || (expectation->of == OF_EVENT && row->has[expectation->place]);
}

/* An expectation must be met by every row that has its event or metric. */
static int report_expectations(struct activity *activity)
{
	const struct counting *stat = activity->state;
	int err = 0;

	for (size_t e = 0; e < activity->plan.expectations.nr && !err; e++) {
		const struct expectation *expectation = &activity->plan.expectations.list[e];

		if (expectation->of == OF_ELAPSED)
			err = report_expectation(activity, expectation, NULL);
		for (size_t r = 0; r < stat->tally.nr && !err; r++)
			if (is_of_row(expectation, &stat->tally.rows[r]))
				err = report_expectation(activity, expectation, &stat->tally.rows[r]);
	}
	return err;
}

/* --- intervals -------------------------------------------------------------------------------- */

static int stat_drain(struct activity *activity)
{
	struct counting *stat = activity->state;

	cgroup_watch_gather(activity);
	tally_look(&stat->tally, activity->counters);
	activity->drain_ns = tally_pace(&stat->tally, activity->drain_ns, activity->options->interval_ms);
	return 0;
}

static int report_row(struct activity *activity, const struct tally_row *row)
{
	int err = 0;

	for (size_t i = 0; i < activity->plan.events.nr && !err; i++) {
		const struct metric *metric = explains(activity, i);

		if (!row->has[i])
			continue;
		err = report_count(activity, i, row);
		if (metric && !err)
			err = report_metric(activity, metric, row);
	}
	for (size_t i = 0; i < activity->plan.metrics.nr && !err; i++)
		if (activity->plan.metrics.list[i].explains == NO_EVENT)
			err = report_metric(activity, &activity->plan.metrics.list[i], row);
	return err;
}

static int stat_report(struct activity *activity, bool last)
{
	struct counting *stat = activity->state;
	int err = 0;

	cgroup_watch_gather(activity);
	tally_read(&stat->tally, activity->counters, last);
	if (activity_cut(activity))
		tally_void(&stat->tally);
	if (last && counters_by_switches(activity->counters))
		counters_switches(activity->counters, &stat->switches, &stat->switches_missed);
	activity->drain_ns = tally_pace(&stat->tally, activity->drain_ns, activity->options->interval_ms);
	stat->duration_ns += activity_interval_ns(activity);
	time_text(&activity->interval_began_at, stat->start_time);
	for (size_t r = 0; r < stat->tally.nr && !err; r++)
		if (tally_has(&stat->tally, &stat->tally.rows[r]))
			err = report_row(activity, &stat->tally.rows[r]);
	for (size_t r = 0; r < stat->tally.nr && !err && !activity_cut(activity); r++)
		err = doubt_counts(activity, &activity->plan.events, r, stat->tally.rows[r].since, last);
	if (!last)
		return err;
	uncounted_note(&stat->uncounted, activity, &stat->tally);
	add_summaries(stat, &activity->plan);
	for (size_t r = 0; r < stat->tally.nr && !activity_partial(activity); r++)
		summarize(activity, &stat->tally.rows[r], &stat->summaries[r]);
	return err ? err : report_expectations(activity);
}

/* The counters of the next execution begin at 0. */
static void stat_detach(struct activity *activity)
{
	struct counting *stat = activity->state;

	tally_restart(&stat->tally);
	activity->drain_ns = stat->tally.span_ns;
	stat->duration_ns = 0;
}

/* `kind` is "event" or "metric"; `name` and `unit` are those of the event or metric. */
static json_t *summary_record(const struct activity *activity, const struct tally_row *row, const char *kind,
			      const char *name, const char *unit, const struct moments *moments)
{
	const struct counting *stat = activity->state;
	json_t *record = json_pack("{s:s}", "type", "summary");
	double variance = moments_variance(moments);

	json_object_set_new(record, kind, value_text(name, NAME_MOST));
	tally_put(record, &stat->tally, row);
	if (unit[0])
		json_object_set_new(record, "unit", value_text(unit, NAME_MOST));
	json_object_set_new(record, "executions", json_integer(activity->session->repeat));
	json_object_set_new(record, "counted", json_integer(moments->n));
	if (!moments->n)
		return record;
	json_object_set_new(record, "mean", value_real(moments->mean));
	json_object_set_new(record, "min", value_real(moments->least));
	json_object_set_new(record, "max", value_real(moments->most));
	if (moments->n > 1) { /* one value has no variance */
		json_object_set_new(record, "variance", value_real(variance));
		json_object_set_new(record, "stddev", value_real(sqrt(variance)));
		json_object_set_new(record, "stddev_of_mean", value_real(sqrt(variance / moments->n)));
	}
	return record;
}

static int write_summary(struct activity *activity, size_t r)
{
	const struct counting *stat = activity->state;
	const struct tally_row *row = &stat->tally.rows[r];
	const struct summary *summary = &stat->summaries[r];
	int err = 0;

	for (size_t i = 0; i < activity->plan.events.nr && !err; i++) {
		const struct event *event = &activity->plan.events.list[i];
		json_t *record;

		if (!row->has[i])
			continue;
		record =
			summary_record(activity, row, "event", event->name, event->unit, &summary->events[i]);
		activity_put_event(record, event);
		err = activity_write(activity, record);
	}
	for (size_t i = 0; i < activity->plan.metrics.nr && !err; i++) {
		const struct metric *metric = &activity->plan.metrics.list[i];

		err = activity_write(activity, summary_record(activity, row, "metric", metric->name,
							      metric->known->unit, &summary->metrics[i]));
	}
	return err;
}

static int stat_finish(struct activity *activity, json_t *end)
{
	const struct counting *stat = activity->state;
	int err = 0;

	if (!stat)
		return 0;
	uncounted_say(&stat->uncounted, activity);
	if (stat->switches)
		json_object_set_new(end, "cgroup_switches",
				    json_pack("{s:I, s:I}", "seen", (json_int_t)stat->switches, "missed",
					      (json_int_t)stat->switches_missed));
	if (!activity->options->repeats || !timespec_is_set(&activity->began))
		return 0;
	for (size_t r = 0; r < stat->nr_summaries && !err; r++)
		err = write_summary(activity, r);
	return err;
}

static void stat_release(struct activity *activity)
{
	struct counting *stat = activity->state;

	if (!stat)
		return;
	for (size_t i = 0; i < activity->plan.events.nr; i++) {
		json_decref(stat->names[i]);
		json_decref(stat->units[i]);
	}
	free(stat->names);
	free(stat->units);
	tally_release(&stat->tally);
	for (size_t r = 0; r < stat->nr_summaries; r++) {
		free(stat->summaries[r].events);
		free(stat->summaries[r].metrics);
	}
	free(stat->summaries);
	uncounted_release(&stat->uncounted);
	free(stat);
}

static const struct activity_ops stat_ops = {
	.plan = plan_stat,
	.check = stat_check,
	.describe = stat_describe,
	.want = stat_want,
	.attach = activity_attach_reader,
	.drain = stat_drain,
	.report = stat_report,
	.detach = stat_detach,
	.finish = stat_finish,
	.release = stat_release,
};

static int choose(struct activity *activity, struct refusal *refusal)
{
	activity->ops = &stat_ops;
	return 0;
}

static const struct record_type metric_type = {.name = "metric", .list = "inputs"};
REGISTER_RECORD(metric_type);

static const struct activity_type type = {choose, .records = "count,metric,expectation"};

/* --- the command ------------------------------------------------------------------------------ */

static const struct option_row rows[] = {
	{'M', "metrics", "METRICS", OPTION_LIST, COMMON(metrics), .values = VALUES_METRICS,
	 .help = "metrics to derive from counts, or patterns: ipc, page_faults_per_second, 'l2_*', …"},
	{'r', "repeat", "N", OPTION_NUMBER, COMMON(repeats), .least = 1, .most = 1000000, .line_only = true,
	 .help = "run COMMAND N times in sequence; mean and variance at the end"},
	{0, "expect", "EXPR", OPTION_TEXTS, OWN(struct stat_options, expect),
	 .help = "exit 4 unless it holds; repeatable: 'ipc>0.8', 'page-faults<=1e4'"},
	{0},
};

static const struct command stat = {
	.name = "stat",
	.arguments = "[OPTIONS] [-- COMMAND …]",
	.help = "counts events",
	.options = {event_rows, rows, target_rows, per_rows, interval_rows, stream_rows, format_rows,
		    screen_rows, plan_rows, msr_rows, table_rows, host_rows, machine_rows, help_rows},
	.own_size = sizeof(struct stat_options),
	.activity = &type,
};
REGISTER_COMMAND(stat);
