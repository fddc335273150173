// SPDX-License-Identifier: GPL-2.0-only
/* The tables of stat: counts, metrics, and results of expectations. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "output/rows.h"
#include "output/table.h"

/* A row of counts begins with its keys. */
static void add_row_name(struct text *text, const json_t *record)
{
	char name[ROW_NAME_MAX];

	if (*row_name(record, name, sizeof(name)))
		text_add(text, "%s%*s", name, text_columns(name) < 20 ? 20 - text_columns(name) : 0, "");
}

static void add_missing(struct text *text, const json_t *record)
{
	const char *missing = string(record, "cpus_missing");

	if (*missing)
		text_add(text, "  (CPU %s was offline)", missing);
}

/* Formats a number of any size and sign, with as many digits as are useful. */
static const char *shown_real(double number, char *buffer, size_t size)
{
	snprintf(buffer, size, fabs(number) < 1e6 && (!number || fabs(number) >= 0.001) ? "%.3f" : "%.4g",
		 number);
	return buffer;
}

/* Formats an integer as it is, and any other number with as many digits as are useful. */
static const char *shown_number(double number, char *buffer, size_t size)
{
	if (number == rint(number) && fabs(number) < 1e15)
		return row_grouped((json_int_t)number, buffer, size);
	return shown_real(number, buffer, size);
}

/* Formats an end of a bound, whose decimals say nothing from 1,000 on. */
static const char *shown_end(double number, char *buffer, size_t size)
{
	return shown_number(fabs(number) < 1000 ? number : rint(number), buffer, size);
}

/* Adds the bound of an estimate that says little. */
static void add_between(struct text *text, double low, double high)
{
	char least[40], most[40];

	if (low)
		text_add(text, ", from %s to %s", shown_end(low, least, sizeof(least)),
			 shown_end(high, most, sizeof(most)));
	else
		text_add(text, ", at most %s", shown_end(high, most, sizeof(most)));
}

/* Adds how far an estimate can be off, in percent of it. */
static void add_bound(struct text *text, const json_t *record, double value)
{
	const json_t *bound = json_object_get(record, "bound"), *high = json_object_get(bound, "high");
	double low = json_number_value(json_object_get(bound, "low"));

	if (!json_object_get(bound, "readings"))
		return;
	if (!high)
		text_add(text, ", too short to say how far off");
	else if (!value || json_number_value(high) > 2 * fabs(value))
		add_between(text, low, json_number_value(high));
	else
		text_add(text, ", within %.1f%%",
			 100 * fmax(json_number_value(high) - value, value - low) / fabs(value));
}

/* Columns of the longest metric that add_beside() adds: " # 123.456 K insn per cycle". */
#define BESIDE_MOST 27

/* Leaves the line open for the metric, or begins another one if a terminal has no room for it there. */
static void make_room_beside(struct text *text)
{
	int used = text_columns(text->bytes), left = text->width - BESIDE_MOST;

	if (text->width && used > left)
		text_add(text, "\n%*s", left < 0 ? 0 : left < used ? left : used, "");
}

/* The width of a number's column. It is narrower where a terminal is so narrow that what stands beside the
 * number would find no room: a metric if there is a time or a row's name before it, or a spread. */
static int number_width(const struct text *text, bool spread)
{
	return (text->used || spread) && text->width && text->width < 90 ? 13 : 24;
}

static void count_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const char *status = string(record, "status");
	const char *unit = string(record, "unit");
	json_t *in_unit = json_object_get(record, "value_in_unit");
	bool explained = json_object_get(record, "explained_by");
	char number[40] = "not counted", event[512];

	row_time(text, stream, record);
	add_row_name(text, record);
	if (in_unit)
		row_grouped_real(json_real_value(in_unit), number, sizeof(number));
	else if (strcmp(status, "not_counted"))
		row_grouped(integer(record, "scaled"), number, sizeof(number));
	row_cell(json_object_get(record, "event"), event, sizeof(event));
	text_add(text, explained ? "%*s %-6s %-17s" : "%*s %-6s %s", number_width(text, false), number, unit,
		 event);
	if (*string(record, "why"))
		text_add(text, "  (%s)", string(record, "why"));
	if (!strcmp(status, "multiplexed")) {
		text_add(text, "  (ran %.1f%% of the time",
			 row_share(integer(record, "running_ns"), integer(record, "enabled_ns")));
		add_bound(text, record, integer(record, "scaled"));
		text_add(text, ")");
	}
	add_missing(text, record);
	/* Without a count there is no metric to make room for. */
	if (explained && strcmp(status, "not_counted"))
		make_room_beside(text);
	else if (!explained)
		text_add(text, "\n");
}

/* Ends a line with what the repeated executions had in common. */
static void add_spread(struct text *text, const json_t *record)
{
	double mean = json_number_value(json_object_get(record, "mean"));
	double stddev = json_number_value(json_object_get(record, "stddev"));
	json_t *least = json_object_get(record, "min");
	long long counted = integer(record, "counted");

	if (counted > 1 && json_equal(least, json_object_get(record, "max"))) {
		text_add(text, "  (identical in %lld runs)\n", counted);
		return;
	}
	text_add(text, "  (mean of %lld", counted);
	if (json_object_get(record, "stddev"))
		text_add(text, ", standard deviation %.2f%%", mean ? 100 * stddev / fabs(mean) : 0);
	text_add(text, ")\n");
}

static void summary_table(struct text *text, const struct stream *stream, const json_t *record)
{
	double mean = json_number_value(json_object_get(record, "mean"));
	bool derived = json_object_get(record, "metric");
	char number[40] = "not counted", event[512];

	row_cell(json_object_get(record, "event"), event, sizeof(event));

	if (integer(record, "counted") && derived)
		shown_real(mean, number, sizeof(number));
	else if (integer(record, "counted"))
		row_grouped((json_int_t)(mean + 0.5), number, sizeof(number));
	add_row_name(text, record);
	if (derived)
		text_add(text, "%*s %-6s %s, %s", number_width(text, true), number, "",
			 string(record, "metric"), string(record, "unit"));
	else
		text_add(text, "%*s %-6s %s", number_width(text, true), number, string(record, "unit"),
			 event);
	add_spread(text, record);
}

/* Labels of metrics that are shown next to the count that they explain. A metric that is not here is shown
 * with its unit. */
static const struct {
	const char *metric, *words;
} beside[] = {
	{"cpus_utilized", "CPUs utilized"},	 {"context_switches_per_second", "per second"},
	{"migrations_per_second", "per second"}, {"page_faults_per_second", "per second"},
	{"branches_per_second", "per second"},	 {"ipc", "insn per cycle"},
	{"branch_miss_ratio", "% mispredicted"},
};

/* Formats 1234567.8 as "1.235 M". */
static const char *shown_short(double number, char *buffer, size_t size)
{
	static const char *const prefixes[] = {"", " K", " M", " G", " T"};
	size_t i = 0;

	while (fabs(number) >= 1000 && i + 1 < ARRAY_SIZE(prefixes)) {
		number /= 1000;
		i++;
	}
	snprintf(buffer, size, "%.3f%s", number, prefixes[i]);
	return buffer;
}

/* Ends the line of a count with a metric: "  # 0.998 CPUs utilized". */
static void add_beside(struct text *text, const json_t *record)
{
	const char *words = string(record, "unit");
	char number[40];

	for (size_t i = 0; i < ARRAY_SIZE(beside); i++)
		if (!strcmp(beside[i].metric, string(record, "metric")))
			words = beside[i].words;
	if (json_object_get(record, "value"))
		text_add(text, " # %s %s",
			 shown_short(json_number_value(json_object_get(record, "value")), number,
				     sizeof(number)),
			 words);
	row_end(text);
}

static void metric_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *value = json_object_get(record, "value");
	double share_run = json_number_value(json_object_get(record, "running_share"));
	char number[40] = "absent";

	if (json_object_get(record, "explains")) {
		add_beside(text, record);
		return;
	}
	if (value)
		shown_real(json_number_value(value), number, sizeof(number));
	row_time(text, stream, record);
	add_row_name(text, record);
	text_add(text, "%*s %-6s %s, %s", number_width(text, false), number, "", string(record, "metric"),
		 string(record, "unit"));
	if (!value) {
		text_add(text, ": %s", string(record, "why"));
	} else if (share_run < 1) {
		text_add(text, "  (ran %.1f%% of the time", 100 * share_run);
		add_bound(text, record, json_number_value(value));
		text_add(text, ")");
	}
	add_missing(text, record);
	text_add(text, "\n");
}

static void expectation_table(struct text *text, const struct stream *stream, const json_t *record)
{
	static const char *const words[][2] = {
		{"met", "as expected"}, {"failed", "NOT AS EXPECTED"}, {"cannot_tell", "CAN'T TELL"}};
	const json_t *value = json_object_get(record, "value");
	const char *outcome = string(record, "outcome"), *unit = string(record, "unit");
	char number[40] = "no value";
	double measured = json_number_value(value);

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(outcome, words[i][0]))
			text_add(text, "%24s        ", words[i][1]);
	if (value)
		shown_number(measured, number, sizeof(number));
	add_row_name(text, record);
	text_add(text, "%s: %s%s%s", string(record, "expectation"), number, value && *unit ? " " : "",
		 value ? unit : "");
	add_bound(text, record, measured);
	if (*string(record, "why"))
		text_add(text, "; %s", string(record, "why"));
	text_add(text, "\n");
}

static void add_seconds(struct text *text, const json_t *from, const char *name, const char *words)
{
	if (json_object_get(from, name))
		text_add(text, "%24.6f %-6s %s\n", integer(from, name) / 1e9, "s", words);
}

/* Whether what is counted is the command, and not something else for as long as a command runs. */
static bool counts_command(const json_t *target)
{
	static const char *const others[] = {"pids", "tids", "cgroups", "cpus"};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (json_object_get(target, others[i]))
			return false;
	return true;
}

/* Adds how long it took, in the manner of time(1). The CPU time is that of the command, which nobody is to
 * take for that of what is counted. */
static void end_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *command = json_object_get(record, "command");

	if (strcmp(string(stream->start, "command"), "stat") || json_object_get(stream->start, "repeats"))
		return;
	text_add(text, "\n");
	if (!json_object_get(command, "elapsed_ns"))
		add_seconds(text, record, "duration_ns", "elapsed");
	add_seconds(text, command, "elapsed_ns", "elapsed");
	if (!counts_command(json_object_get(stream->start, "target")))
		return;
	add_seconds(text, command, "user_ns", "user");
	add_seconds(text, command, "system_ns", "sys");
}

REGISTER_TABLE(end, end_table);
REGISTER_TABLE(count, count_table);
REGISTER_TABLE(metric, metric_table);
REGISTER_TABLE(summary, summary_table);
REGISTER_TABLE(expectation, expectation_table);
