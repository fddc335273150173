// SPDX-License-Identifier: GPL-2.0-only
#include "output/meters.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/memory.h"
#include "output/flatten.h"
#include "output/member.h"
#include "output/text.h"
#include "record/overhead.h"

/* The limit of series for cgroups where --series is not given. */
#define OWNERS_MOST 10000

/* A series that had no value for UNUSED_S may be dropped for a new one. Such series are searched for once in
 * LOOK_S. */
#define UNUSED_S 3600
#define LOOK_S	 60

/* --- names ------------------------------------------------------------------------------------ */

void meter_add_words(struct text *name, const char *words)
{
	if (!strcmp(words, "%"))
		words = "percent";
	for (; *words; words++)
		text_add(name, "%c", isalnum((unsigned char)*words) ? tolower(*words) : '_');
}

static bool ends(const char *text, const char *with)
{
	size_t length = strlen(text), other = strlen(with);

	return length >= other && !strcmp(text + length - other, with);
}

/* How many bytes of a suffix, whole words, a name ends with already: page_faults_per_second has a part of
 * _per_second_of_task_clock. */
static size_t already_there(const char *name, const char *suffix)
{
	size_t found = 0;

	for (size_t at = 1; suffix[at - 1]; at++) {
		size_t length = strlen(name);

		if ((suffix[at] == '_' || !suffix[at]) && length >= at &&
		    !memcmp(name + length - at, suffix, at))
			found = at;
	}
	return found;
}

#define PREFIX "nhmtap_"

char *meter_full_name(const char *name, const char *unit)
{
	struct text full = {0}, suffix = {0};

	text_add(&full, PREFIX);
	meter_add_words(&full, name);
	text_add(&suffix, "_");
	meter_add_words(&suffix, unit);
	if (*unit)
		text_add(&full, "%s", suffix.bytes + already_there(full.bytes, suffix.bytes));
	free(suffix.bytes);
	return full.bytes;
}

/* --- families and series ---------------------------------------------------------------------- */

/* The family of this name; NULL if there is none. `metric`: of a metric, which may have the name of a family
 * that counts something else. */
static struct meter *find_family(struct meters *meters, const char *name, bool metric)
{
	struct meter *family = meters->families;

	while (family && (family->metric != metric || strcmp(family->asked, name)))
		family = family->next;
	return family;
}

/* `name` is what outputs call it, `asked` what it is found by. */
static struct meter *new_family(struct meters *meters, enum meter_kind kind, const char *name,
				const char *asked, const char *unit, const char *help)
{
	struct meter *family = xcalloc(1, sizeof(*family));

	family->kind = kind;
	family->name = xstrdup(name);
	family->asked = xstrdup(asked);
	family->unit = xstrdup(unit);
	family->help = xstrdup(help);
	family->index = json_object();
	family->whole = true;
	*meters->end = family;
	meters->end = &family->next;
	return family;
}

static struct meter *family_of(struct meters *meters, enum meter_kind kind, const char *name,
			       const char *unit, const char *help)
{
	struct meter *family = find_family(meters, name, false);

	return family ? family : new_family(meters, kind, name, name, unit, help);
}

/* What formats put behind the name of a family: units, and suffixes of its kind. */
static bool is_ending(const char *text)
{
	static const char *const endings[] = {"",	"_total", "_info",  "_bucket",	"_sum",
					      "_count", "_ratio", "_bytes", "_seconds", "_cycles"};

	for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
		if (!strcmp(endings[i], text))
			return true;
	return false;
}

static bool is_own_word(const char *word)
{
	static const char *const own[] = {
		"analysis_share",
		"analysis_share_low",
		"analysis_share_high",
		"build",
		"event_running",
		"events",
		"host_emulated",
		"latency",
		"missed_records",
		"offcore_responses",
		"output_failures",
		"refused_records",
		"rejected_points",
		"samples",
		"samples_lost",
		"samples_throttled",
		"self_cpu",
		"self_memory",
		"warnings",
		"config_last_reload_successful",
	};

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (!strncmp(own[i], word, strlen(own[i])) && is_ending(word + strlen(own[i])))
			return true;
	/* Behind the name of an activity. */
	return ends(word, "_entries") || ends(word, "_entries_total");
}

/* Whether a metric's name is one that nhmtap gives itself, now or later in the run, by itself or with its
 * unit. */
static bool is_own(const char *name, const char *unit)
{
	char *full = meter_full_name(name, unit);
	struct text words = {0};
	bool own;

	meter_add_words(&words, name);
	own = is_own_word(words.bytes) || is_own_word(full + strlen(PREFIX));
	free(words.bytes);
	free(full);
	return own;
}

static bool is_taken(const struct meters *meters, const char *name, const char *unit)
{
	char *wanted = meter_full_name(name, unit);
	bool taken = false;

	for (const struct meter *family = meters->families; family && !taken; family = family->next) {
		char *full = meter_full_name(family->name, family->unit);

		taken = !strcmp(full, wanted);
		free(full);
	}
	free(wanted);
	return taken;
}

/* The family of a metric. Tables of users' own name metrics as they like: what has a name already is called
 * metric_NAME, or NAME_2. */
static struct meter *family_of_metric(struct meters *meters, const char *metric, const char *unit,
				      const char *help)
{
	struct meter *family = find_family(meters, metric, true);
	char *name, *numbered = NULL;

	if (family)
		return family;
	name = xasprintf("%s%s", is_own(metric, unit) ? "metric_" : "", metric);
	for (unsigned int nr = 2; is_taken(meters, numbered ? numbered : name, unit); nr++) {
		free(numbered);
		numbered = xasprintf("%s_%u", name, nr);
	}
	family = new_family(meters, METER_GAUGE, numbered ? numbered : name, metric, unit, help);
	family->metric = true;
	family->whole = false;
	free(numbered);
	free(name);
	return family;
}

/* Labels with few different values, whatever programs run. */
static bool is_few(const char *label)
{
	static const char *const few[] = {"activity", "event",	  "nth",     "cpu",	 "node",   "socket",
					  "core",     "explains", "request", "response", "source", "cause",
					  "lock",     "tlb",	  "version", "output",	 "errno"};

	for (size_t i = 0; i < ARRAY_SIZE(few); i++)
		if (!strcmp(few[i], label))
			return true;
	return false;
}

static json_t *with_others(const json_t *labels)
{
	json_t *others = json_object(), *value;
	const char *name;

	json_object_foreach((json_t *)labels, name, value)
		json_object_set_new(others, name, is_few(name) ? json_incref(value) : json_string("other"));
	return others;
}

static bool all_few(const json_t *labels)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)labels, name, value)
		if (!is_few(name))
			return false;
	return true;
}

/* The labels as one text, valid until the next call. */
static const char *text_of(struct meters *meters, const json_t *labels)
{
	meters->text.used = 0;
	compact_add_value(&meters->text, labels);
	compact_add(&meters->text, "", 1);
	return meters->text.text;
}

static void forget_series(struct meters *meters, struct meter *family, size_t at)
{
	struct meter_series *series = &family->series[at];
	bool was_bounded = series->bounded;

	json_object_del(family->index, text_of(meters, series->labels));
	json_decref(series->labels);
	free(series->text);
	*series = family->series[--family->nr];
	if (at < family->nr)
		json_object_set_new(family->index, text_of(meters, series->labels), json_integer(at));
	meters->used -= was_bounded;
}

static void forget_unused(struct meters *meters)
{
	time_t now = clock_seconds();

	if (now < meters->looked + LOOK_S)
		return;
	meters->looked = now;
	for (struct meter *family = meters->families; family; family = family->next)
		for (size_t i = family->nr; i--;)
			if (family->series[i].bounded && family->series[i].used + UNUSED_S < now)
				forget_series(meters, family, i);
}

void meters_forget_event(struct meters *meters, const char *activity, const char *event)
{
	for (struct meter *family = meters->families; family; family = family->next)
		for (size_t i = family->nr; i--;) {
			const json_t *labels = family->series[i].labels;

			if (!strcmp(string(labels, "activity"), activity) &&
			    !strcmp(string(labels, "event"), event))
				forget_series(meters, family, i);
		}
}

static struct meter_series *new_series(struct meters *meters, struct meter *meter, json_t *labels)
{
	json_object_set_new(meter->index, text_of(meters, labels), json_integer(meter->nr));
	*xappend(meter->series, meter->nr) = (struct meter_series){.labels = labels, .begun = meters->since};
	return &meter->series[meter->nr - 1];
}

/* The interval of a series becomes one that has the record's, too. */
static void extend_interval(const struct meters *meters, struct meter_series *series)
{
	if (!meters->since)
		return;
	if (!series->from || meters->since < series->from)
		series->from = meters->since;
	if (meters->until > series->until)
		series->until = meters->until;
}

/* Returns the series with these labels, whose reference is consumed. If the limit is reached, it returns the
 * series that sums up all others. */
static struct meter_series *series_of(struct meters *meters, struct meter *meter, json_t *labels)
{
	const json_t *place = json_object_get(meter->index, text_of(meters, labels));
	struct meter_series *series;
	bool bounded = false;

	if (!place && !all_few(labels)) {
		if (meters->used >= meters->limit)
			forget_unused(meters);
		if (meters->used >= meters->limit) {
			json_t *others = with_others(labels);

			json_decref(labels);
			labels = others;
			place = json_object_get(meter->index, text_of(meters, labels));
		} else {
			meters->used++;
			bounded = true;
		}
	}
	if (place) {
		json_decref(labels);
		series = &meter->series[json_integer_value(place)];
	} else {
		series = new_series(meters, meter, labels);
		series->bounded = bounded;
	}
	series->used = clock_seconds();
	extend_interval(meters, series);
	return series;
}

struct meters *meters_new(__u64 series)
{
	struct meters *meters = xcalloc(1, sizeof(*meters));

	meters->end = &meters->families;
	meters->limit = series ? series : OWNERS_MOST;
	meters->entries = series;
	return meters;
}

void meters_release(struct meters *meters)
{
	while (meters && meters->families) {
		struct meter *family = meters->families;

		meters->families = family->next;
		for (size_t i = 0; i < family->nr; i++) {
			json_decref(family->series[i].labels);
			free(family->series[i].text);
		}
		json_decref(family->index);
		free(family->series);
		free(family->name);
		free(family->asked);
		free(family->unit);
		free(family->help);
		free(family);
	}
	if (meters)
		free(meters->text.text);
	free(meters);
}

void meters_begin_anew(struct meters *meters)
{
	meters->spent = own_cpu_ns() / 1e9;
	for (struct meter *family = meters->families; family; family = family->next)
		for (size_t i = 0; i < family->nr; i++)
			family->series[i] = (struct meter_series){
				.labels = family->series[i].labels,
				.text = family->series[i].text,
				.bounded = family->series[i].bounded,
				.used = family->series[i].used,
				.begun = family->series[i].begun,
				.told = family->series[i].told,
			};
}

void meters_clear_gauges(struct meters *meters)
{
	for (struct meter *family = meters->families; family; family = family->next)
		for (size_t i = 0; i < family->nr && family->kind == METER_GAUGE; i++) {
			family->series[i].set = false;
			family->series[i].from = family->series[i].until = 0;
		}
}

/* --- records ---------------------------------------------------------------------------------- */

struct taking {
	struct meters *meters;
	const char *activity;
	const json_t *record;
};

static json_t *labels_of(const struct taking *taking)
{
	json_t *labels = json_object();

	if (taking->activity)
		json_object_set_new(labels, "activity", json_string(taking->activity));
	json_object_set(labels, "event", json_object_get(taking->record, "event"));
	json_object_set(labels, "nth", json_object_get(taking->record, "nth"));
	return labels;
}

/* Labels that name the owner of a count. Without --series these are the only unlimited labels that are used:
 * functions, pids and addresses are not. */
static bool is_owner(const char *label)
{
	static const char *const owners[] = {"cgroup", "container.id", "container.runtime", "k8s.pod.uid",
					     "systemd.unit"};

	for (size_t i = 0; i < ARRAY_SIZE(owners); i++)
		if (!strcmp(owners[i], label))
			return true;
	return false;
}

static json_t *labels_of_row(const struct taking *taking, const struct row *row)
{
	json_t *labels = labels_of(taking), *value;
	const char *name;

	json_object_foreach(row->keys, name, value) {
		if (!strcmp(name, "metric") || !strcmp(name, "explained_by"))
			continue;
		if (is_few(name) || is_owner(name) || taking->meters->entries)
			json_object_set(labels, name, value);
	}
	return labels;
}

static void add_to_counter(const struct taking *taking, const char *name, const char *help, json_t *labels,
			   __u64 more)
{
	struct meter *family = family_of(taking->meters, METER_COUNTER, name, "", help);
	struct meter_series *series = series_of(taking->meters, family, labels);

	series->set = true;
	series->count += more;
}

static void set_gauge(struct meters *meters, const char *name, const char *unit, const char *help,
		      json_t *labels, double number)
{
	struct meter *family = family_of(meters, METER_GAUGE, name, unit, help);
	struct meter_series *series = series_of(meters, family, labels);

	family->whole = false;
	series->set = true;
	series->number = number;
}

/* Whether nobody knows the count, as of an event that was not counted while its target ran: 0 would say that
 * it did not occur. */
static bool is_unknown(const json_t *values)
{
	return !strcmp(string(values, "status"), "not_counted") && !count_is_zero(string(values, "why"));
}

/* Several counts of one interval may belong to one series; their times are added up. */
static void set_running(const struct taking *taking, const json_t *times, json_t *labels)
{
	struct meter *family = family_of(taking->meters, METER_GAUGE, "event_running", "ratio",
					 "How much of the last interval the event was counted.");
	struct meter_series *series = series_of(taking->meters, family, labels);
	const char *since = string(taking->record, "start_time");

	family->whole = false;
	if (strcmp(series->since, since)) {
		snprintf(series->since, sizeof(series->since), "%s", since);
		series->part = series->whole = 0;
	}
	series->part += integer(times, "running_ns");
	series->whole += integer(times, "enabled_ns");
	series->set = series->whole || is_unknown(times);
	series->number = series->whole ? (double)series->part / series->whole : 0;
}

static int take_count(void *context, const struct row *row)
{
	const struct taking *taking = context;
	json_t *labels = labels_of_row(taking, row);

	set_running(taking, row->values, json_incref(labels));
	if (is_unknown(row->values)) {
		json_decref(labels);
		return 0;
	}
	add_to_counter(
		taking, "events",
		"What events have counted; of one that was counted part of the time, what that stands for.",
		labels, integer(row->values, "scaled"));
	return 0;
}

/* Takes the value of a metric. A metric without a value is left out; so is one of which several rows of an
 * interval share a series, as those of threads do without --series: ratios don't add up, and that of one
 * isn't that of all. */
static int take_metric(void *context, const struct row *row)
{
	const struct taking *taking = context;
	struct meter *family =
		family_of_metric(taking->meters, string(taking->record, "metric"),
				 string(row->values, "unit"), string(row->values, "description"));
	struct meter_series *series = series_of(taking->meters, family, labels_of_row(taking, row));
	const char *since = string(taking->record, "start_time");
	double number = json_number_value(row->value);
	bool again = !strcmp(series->since, since);

	snprintf(series->since, sizeof(series->since), "%s", since);
	series->set = row->value && (!again || (series->set && series->number == number));
	series->number = number;
	return 0;
}

/* Takes a share of an account with its bounds. One that was not measured is left out. */
static int take_share(void *context, const struct row *row)
{
	static const struct {
		const char *name, *help, *member;
	} gauges[] = {
		{"analysis_share", "Shares of the cycles.", NULL},
		{"analysis_share_low", "The least that they are.", "low"},
		{"analysis_share_high", "The most that they are.", "high"},
	};
	const struct taking *taking = context;

	for (size_t i = 0; i < ARRAY_SIZE(gauges); i++) {
		const json_t *number =
			gauges[i].member ? json_object_get(row->values, gauges[i].member) : row->value;
		json_t *labels = labels_of_row(taking, row);
		struct meter *family =
			family_of(taking->meters, METER_GAUGE, gauges[i].name, "ratio", gauges[i].help);
		struct meter_series *series;

		json_object_set(labels, "share", json_object_get(row->keys, "name"));
		series = series_of(taking->meters, family, labels);
		family->whole = false;
		series->set = row->value && number;
		series->number = json_number_value(number);
	}
	return 0;
}

static int take_cell(void *context, const struct row *row)
{
	if (is_unknown(row->values))
		return 0;
	add_to_counter(context, "offcore_responses",
		       "Off-core requests by what answered them; of a cell that was counted part of the "
		       "time, what that "
		       "stands for.",
		       labels_of_row(context, row), integer(row->values, "scaled"));
	return 0;
}

static int take_entry(void *context, const struct row *row)
{
	const struct taking *taking = context;
	char name[40];

	snprintf(name, sizeof(name), "%s_entries", string(taking->record, "type"));
	add_to_counter(taking, name,
		       "What samples stand for (the sum of their periods), by the keys of --by.",
		       labels_of_row(taking, row), json_integer_value(row->value));
	return 0;
}

static void take_samples(const struct taking *taking)
{
	const json_t *samples = json_object_get(taking->record, "samples");
	json_t *count;
	const char *cause;

	if (!json_is_object(samples))
		return;
	if (json_object_get(taking->record, "enabled_ns"))
		set_running(taking, taking->record, labels_of(taking));
	add_to_counter(taking, "samples", "Samples that were aggregated.", labels_of(taking),
		       integer(samples, "aggregated"));
	if (json_object_get(samples, "throttled"))
		add_to_counter(taking, "samples_throttled",
			       "How often the kernel paused the event, which sampled too often.",
			       labels_of(taking), integer(samples, "throttled"));
	json_object_foreach(json_object_get(samples, "lost"), cause, count) {
		json_t *labels = labels_of(taking);

		json_object_set_new(labels, "cause", json_string(cause));
		add_to_counter(taking, "samples_lost", "Samples that were not, by cause.", labels,
			       json_integer_value(count));
	}
}

static void take_latencies(const struct taking *taking)
{
	struct meter *family;
	json_t *source, *count;
	const char *from;
	size_t i;

	json_array_foreach(json_object_get(taking->record, "sources"), i, source) {
		struct meter_series *series;
		const json_t *histogram = json_object_get(source, "latency_histogram_period");
		json_t *labels;

		if (!json_object_size(histogram))
			continue;
		labels = labels_of(taking);
		json_object_set(labels, "source", json_object_get(source, "source"));
		family = family_of(taking->meters, METER_HISTOGRAM, "latency", "cycles",
				   "How long loads took, by where they found their data: what samples stand "
				   "for, not their number.");
		series = series_of(taking->meters, family, labels);
		series->set = true;
		series->sum += integer(source, "latency_sum_period");
		json_object_foreach((json_t *)histogram, from, count) {
			int bucket = __builtin_ctzl(strtoul(from, NULL, 10) | 1UL << (METER_BUCKETS - 1));

			series->buckets[bucket] += json_integer_value(count);
			series->count += json_integer_value(count);
		}
	}
}

static void take_gap(const struct taking *taking)
{
	json_t *labels = labels_of(taking);

	json_object_set(labels, "cause", json_object_get(taking->record, "cause"));
	json_object_set(labels, "output", json_object_get(taking->record, "output"));
	add_to_counter(taking, "missed_records", "Records that this output has missed, by cause.", labels,
		       integer(taking->record, "records"));
}

static void take_warning(const struct taking *taking)
{
	const json_t *rejected = json_object_get(taking->record, "rejected");
	const json_t *refused = json_object_get(taking->record, "refused");
	json_t *labels = labels_of(taking);

	json_object_set(labels, "cause", json_object_get(taking->record, "cause"));
	add_to_counter(taking, "warnings", "Warnings, by cause.", labels, 1);
	if (!rejected && !refused)
		return;
	labels = labels_of(taking);
	json_object_set(labels, "output", json_object_get(taking->record, "output"));
	if (rejected)
		add_to_counter(taking, "rejected_points",
			       "Data points and profiles that a server has rejected.", labels,
			       json_integer_value(rejected));
	else
		add_to_counter(taking, "refused_records", "Records in requests that a server has refused.",
			       labels, json_integer_value(refused));
}

/* Takes what has happened to an output. */
static bool take_failure(const struct taking *taking)
{
	const json_t *output = json_object_get(taking->record, "output");
	json_t *labels;

	if (!output)
		return false;
	labels = labels_of(taking);
	json_object_set(labels, "output", (json_t *)output);
	json_object_set(labels, "errno", json_object_get(taking->record, "errno"));
	add_to_counter(taking, "output_failures", "How often an output has come to a stand.", labels, 1);
	return true;
}

/* Takes whether the session has taken its new CONFIG. */
static bool take_reload(const struct taking *taking)
{
	set_gauge(taking->meters, "config_last_reload_successful", "",
		  "Whether the session runs by its latest CONFIG.", json_object(),
		  !strcmp(string(taking->record, "outcome"), "taken"));
	return true;
}

static bool take_record(struct meters *meters, const char *activity, const struct calls *calls,
			const json_t *record)
{
	static const struct {
		const char *type;
		int (*take)(void *context, const struct row *row); /* NULL: only its account is a number */
		bool entries; /* its rows are taken with --series only: there are many */
	} rows[] = {
		{"count", take_count, false},	 {"metric", take_metric, false},
		{"offcore", take_cell, false},	 {"profile", take_entry, true},
		{"mem", take_entry, true},	 {"branch", take_entry, true},
		{"analysis", take_share, false}, {"stream", NULL, false},
	};
	struct taking taking = {meters, activity, record};
	const char *type = string(record, "type");

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i].type, type)) {
			if (rows[i].take && (!rows[i].entries || meters->entries))
				flatten(record, calls, false, rows[i].take, &taking);
			take_latencies(&taking);
			take_samples(&taking);
			return true;
		}
	if (!strcmp(type, "error"))
		return take_failure(&taking);
	if (!strcmp(type, "reload"))
		return take_reload(&taking);
	if (!strcmp(type, "warning"))
		take_warning(&taking);
	else if (!strcmp(type, "gap"))
		take_gap(&taking);
	else
		return false;
	return true;
}

bool meters_take(struct meters *meters, const char *activity, const struct calls *calls, const json_t *record)
{
	bool has;

	meters->since = moment(record, "start_time");
	meters->until = meters->since + integer(record, "duration_ns");
	has = take_record(meters, activity, calls, record);
	meters->since = meters->until = 0;
	return has;
}

/* --- nhmtap itself ---------------------------------------------------------------------------- */

static double resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;

	if (file && fscanf(file, "%*u %llu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * 4096.0;
}

void meters_take_self(struct meters *meters)
{
	struct meter *family = family_of(meters, METER_COUNTER, "self_cpu", "seconds",
					 "CPU time that nhmtap itself has taken.");
	struct meter_series *series = series_of(meters, family, json_object());

	family->whole = false;
	series->set = true;
	series->number = own_cpu_ns() / 1e9 - meters->spent;
	set_gauge(meters, "self_memory", "bytes", "Memory that nhmtap itself has resident.", json_object(),
		  resident_bytes());
	family = family_of(meters, METER_INFO, "build", "", "The program.");
	series_of(meters, family, json_pack("{s:s}", "version", NHMTAP_VERSION))->set = true;
}

void meters_take_host(struct meters *meters, const json_t *start)
{
	const json_t *emulated = emulated_host(start);
	struct meter *family;

	if (!emulated)
		return;
	family = family_of(
		meters, METER_INFO, "host_emulated", "",
		"The emulated machine that was measured, whose cycles and latencies are a model's.");
	series_of(meters, family, json_deep_copy(emulated))->set = true;
}
