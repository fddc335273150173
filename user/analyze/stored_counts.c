// SPDX-License-Identifier: GPL-2.0-only
#include "analyze/stored_counts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/account.h"
#include "analyze/analysis_record.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/memory.h"
#include "command/host.h"
#include "event/encoding.h"
#include "event/event.h"
#include "output/member.h"
#include "output/rows.h"
#include "record/record.h"
#include "view/weights.h"

/* What was counted of an event. */
struct stored_count {
	const char *name; /* the start record's */
	struct perf_event_attr attr;
	double value, low, high; /* sums over the intervals */
	bool mean;		 /* they are the mean of several executions */
	bool uncounted;		 /* in an interval it was not counted, so that the sum is too low */
};

/* A row of an activity: what has its own account. */
struct stored_row {
	char *of; /* activity and keys */
	char *activity;
	json_t *keys;
	json_t *start; /* of the activity; NULL: there was none */
	struct stored_count *counts;
	size_t nr_counts;
	/* By analysis records: their sums, each times its duration. */
	json_t *analysis; /* the last, with all shares */
	json_t *sums;	  /* {share: [share, low, high, durations]} */
	size_t intervals;
	json_int_t executions; /* that means are of */
	__u64 since, duration_ns;
	__u64 last; /* when the interval began whose duration was added last */
};

struct stored_counts {
	const struct options *options;
	json_t *starts; /* {activity: start record} of the run that is being read */
	struct stored_row *rows;
	size_t nr;
	bool samples; /* there are records of samples */
};

struct stored_counts *stored_counts_new(const struct options *options)
{
	struct stored_counts *stored = xcalloc(1, sizeof(*stored));

	stored->options = options;
	stored->starts = json_object();
	return stored;
}

void stored_counts_release(struct stored_counts *stored)
{
	for (size_t i = 0; i < stored->nr; i++) {
		free(stored->rows[i].of);
		free(stored->rows[i].activity);
		json_decref(stored->rows[i].keys);
		free(stored->rows[i].counts);
		json_decref(stored->rows[i].start);
		json_decref(stored->rows[i].analysis);
		json_decref(stored->rows[i].sums);
	}
	free(stored->rows);
	json_decref(stored->starts);
	free(stored);
}

/* --- rows ------------------------------------------------------------------------------------- */

static json_t *keys_of(const json_t *record)
{
	static const char *const names[] = {"node", "socket", "core", "cpu", "tid", "comm", "cgroup"};
	json_t *keys = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		json_object_set(keys, names[i], json_object_get(record, names[i]));
	return keys;
}

static struct stored_row *row_of(struct stored_counts *stored, const json_t *record)
{
	const char *activity = string(record, "activity");
	char *keys = row_title(record, "");
	char *of = xasprintf("%s%s", activity, keys);
	struct stored_row *row;

	free(keys);
	for (size_t i = 0; i < stored->nr; i++)
		if (!strcmp(stored->rows[i].of, of)) {
			free(of);
			return &stored->rows[i];
		}
	row = xappend(stored->rows, stored->nr);
	*row = (struct stored_row){
		.of = of,
		.activity = xstrdup(activity),
		.keys = keys_of(record),
		.start = json_incref(json_object_get(stored->starts, activity)),
		.sums = json_object(),
	};
	return row;
}

/* The records of an interval have the same time. */
static void add_time(struct stored_row *row, const json_t *record)
{
	__u64 begin = moment(record, "start_time");

	if (!begin || begin == row->last)
		return;
	row->since = row->since && row->since < begin ? row->since : begin;
	row->last = begin;
	row->duration_ns += integer(record, "duration_ns");
}

/* A long list of events is in several parts. */
static void take_start(struct stored_counts *stored, const json_t *record)
{
	const char *activity = string(record, "activity");
	json_t *known = json_object_get(stored->starts, activity);

	if (known && integer(record, "part") > 1)
		json_array_extend(json_object_get(known, "events"), json_object_get(record, "events"));
	else
		json_object_set_new(stored->starts, activity, json_deep_copy(record));
}

/* --- counts ----------------------------------------------------------------------------------- */

static __u64 number_of(const json_t *attr, const char *name)
{
	const json_t *value = json_object_get(attr, name);

	return json_is_string(value) ? strtoull(json_string_value(value), NULL, 0)
				     : (__u64)json_integer_value(value);
}

/* What was counted of the event of this name so far; NULL if the start record does not have it. One event may
 * have been counted under several names. */
static struct stored_count *count_of(struct stored_row *row, const char *name)
{
	const json_t *event = object_named(json_object_get(row->start, "events"), name);
	const json_t *attr = json_object_get(event, "attr");
	struct stored_count *count;

	for (size_t i = 0; i < row->nr_counts; i++)
		if (!strcmp(row->counts[i].name, name))
			return &row->counts[i];
	if (!event)
		return NULL;
	count = xappend(row->counts, row->nr_counts);
	*count = (struct stored_count){.name = string(event, "name"),
				       .attr = {
					       .type = number_of(attr, "type"),
					       .config = number_of(attr, "config"),
					       .config1 = number_of(attr, "config1"),
					       .exclude_user = !!number_of(attr, "exclude_user"),
					       .exclude_kernel = !!number_of(attr, "exclude_kernel"),
					       .exclude_host = !!number_of(attr, "exclude_host"),
				       }};
	return count;
}

/* Only the first of several equal events is taken. */
static void take_count(struct stored_counts *stored, const json_t *record)
{
	const json_t *bound = json_object_get(record, "bound");
	double value = real_member(record, "scaled", NAN);
	struct stored_count *count;
	struct stored_row *row;

	if (integer(record, "nth") > 1)
		return;
	row = row_of(stored, record);
	add_time(row, record);
	count = count_of(row, string(record, "event"));
	if (!count || count->mean)
		return;
	if (isnan(value)) {
		count->uncounted |= !count_is_zero(string(record, "why"));
		return;
	}
	count->value += value;
	count->low += real_member(bound, "low", value);
	count->high += real_member(bound, "high", bound ? INFINITY : value);
}

/* The mean of several executions stands for each. */
static void take_summary(struct stored_counts *stored, const json_t *record)
{
	double mean = real_member(record, "mean", NAN), error;
	json_int_t counted = integer(record, "counted");
	struct stored_count *count;
	struct stored_row *row;

	if (!json_object_get(record, "event") || integer(record, "nth") > 1 || !counted || isnan(mean))
		return;
	row = row_of(stored, record);
	count = count_of(row, string(record, "event"));
	if (!count)
		return;
	error = weight_mean_error(real_member(record, "stddev_of_mean", INFINITY), counted);
	row->executions = counted > row->executions ? counted : row->executions;
	*count = (struct stored_count){.name = count->name,
				       .attr = count->attr,
				       .value = mean,
				       .low = fmax(mean - error, 0),
				       .high = mean + error,
				       .mean = true};
}

/* --- analyses --------------------------------------------------------------------------------- */

/* Members of a share that are averaged; a fourth sum is that of the weights. */
static const char *const averaged[] = {"share", "low", "high"};

static void add_share(struct stored_row *row, const json_t *share, double weight)
{
	json_t *sums = json_object_get(row->sums, string(share, "name"));

	if (!json_object_get(share, "share"))
		return;
	if (!sums) {
		sums = json_pack("[f, f, f, f]", 0.0, 0.0, 0.0, 0.0);
		json_object_set_new(row->sums, string(share, "name"), sums);
	}
	for (size_t i = 0; i < ARRAY_SIZE(averaged); i++)
		json_real_set(json_array_get(sums, i), json_real_value(json_array_get(sums, i)) +
							       weight * real_member(share, averaged[i], 0));
	json_real_set(json_array_get(sums, 3), json_real_value(json_array_get(sums, 3)) + weight);
}

/* Which shares may be the largest in any interval: what is nowhere measured is known by that alone. */
static void keep_verdict(json_t *verdict, const json_t *earlier)
{
	json_t *one;
	size_t i;

	json_array_foreach(earlier, i, one)
		if (!object_named(verdict, string(one, "name")))
			json_array_append(verdict, one);
}

static void take_analysis(struct stored_counts *stored, const json_t *record)
{
	double weight = fmax(integer(record, "duration_ns"), 1);
	json_t *shares = json_object_get(record, "shares"), *share;
	struct stored_row *row;
	size_t i;

	if (!json_array_size(shares))
		return;
	row = row_of(stored, record);
	add_time(row, record);
	if (row->analysis && integer(record, "part") > 1) {
		json_array_extend(json_object_get(row->analysis, "shares"), shares);
	} else {
		json_t *earlier = row->analysis;

		row->analysis = json_deep_copy(record);
		keep_verdict(json_object_get(row->analysis, "verdict"), json_object_get(earlier, "verdict"));
		json_decref(earlier);
		row->intervals++;
	}
	json_array_foreach(shares, i, share)
		add_share(row, share, weight);
}

void stored_counts_take(struct stored_counts *stored, const json_t *record)
{
	static const struct {
		const char *type;
		void (*take)(struct stored_counts *stored, const json_t *record);
	} takers[] = {{"start", take_start},
		      {"count", take_count},
		      {"summary", take_summary},
		      {"analysis", take_analysis}};
	static const char *const sampling[] = {"profile", "mem", "branch", "sample"};

	for (size_t i = 0; i < ARRAY_SIZE(takers); i++)
		if (!strcmp(takers[i].type, string(record, "type")))
			takers[i].take(stored, record);
	for (size_t i = 0; i < ARRAY_SIZE(sampling); i++)
		stored->samples |= !strcmp(sampling[i], string(record, "type"));
}

/* --- what several intervals make -------------------------------------------------------------- */

/* {name: place in the list}, of the first of each name. A new reference. */
static json_t *places_of(const json_t *list)
{
	json_t *places = json_object(), *one;
	size_t i;

	json_array_foreach(list, i, one)
		if (!json_object_get(places, string(one, "name")))
			json_object_set_new(places, string(one, "name"), json_integer(i));
	return places;
}

static size_t place_of(const json_t *places, const char *name)
{
	const json_t *place = json_object_get(places, name);

	return place ? (size_t)json_integer_value(place) : NOWHERE;
}

/* The most that a share can be that no interval has: all that it is part of. In records of others, a share
 * may be within itself. */
static double most_of(double *most, const size_t *parents, size_t i)
{
	size_t end = i;
	double all;

	for (; end != NOWHERE && isnan(most[end]); end = parents[end])
		most[end] = 1;
	all = end == NOWHERE ? 1 : most[end];
	for (; i != end; i = parents[i])
		most[i] = all;
	return all;
}

static bool is_within(const size_t *parents, size_t i, size_t of)
{
	for (int depth = 0; depth < TREE_DEPTH_MOST && i != of && i != NOWHERE; depth++)
		i = parents[i];
	return i == of && of != NOWHERE;
}

/* What a verdict has beside the name is the same in each interval. One that no interval has is in it if an
 * interval's verdict names it. */
static json_t *judged_shares(const json_t *shares, const json_t *before)
{
	size_t nr = json_array_size(shares), i, found, explained;
	struct judged_share *judged = xcalloc(nr + 1, sizeof(*judged));
	size_t *verdict = xcalloc(nr + 1, sizeof(*verdict)), *parents = xcalloc(nr + 1, sizeof(*parents));
	double *most = xcalloc(nr + 1, sizeof(*most));
	json_t *list = json_array(), *places = places_of(shares), *named = places_of(before), *share;

	json_array_foreach(shares, i, share) {
		parents[i] = place_of(places, string(share, "parent"));
		judged[i] = (struct judged_share){.leaf = !json_object_get(share, "beside"),
						  .there = json_object_get(share, "share"),
						  .share = real_member(share, "share", 0),
						  .low = real_member(share, "low", 0)};
		most[i] = judged[i].there ? real_member(share, "high", 1) : NAN;
	}
	/* What is explained is what something is left of. */
	i = place_of(places, UNEXPLAINED);
	explained = i == NOWHERE ? NOWHERE : parents[i];
	json_array_foreach(shares, i, share) {
		if (parents[i] != NOWHERE && !json_object_get(share, "beside"))
			judged[parents[i]].leaf = false;
		judged[i].most = most_of(most, parents, i);
		if (!judged[i].there && place_of(named, string(share, "name")) == NOWHERE)
			judged[i].most = -INFINITY;
	}
	for (i = 0; i < nr; i++)
		judged[i].part = judged[i].leaf && is_within(parents, i, explained);
	found = account_judge(judged, nr, explained == NOWHERE ? 0 : judged[explained].low, verdict);
	for (i = 0; i < found; i++) {
		const char *name = string(json_array_get(shares, verdict[i]), "name");
		json_t *one = json_array_get(before, place_of(named, name));

		json_array_append_new(list, one ? json_copy(one) : json_pack("{s:s}", "name", name));
	}
	json_decref(places);
	json_decref(named);
	free(judged);
	free(verdict);
	free(parents);
	free(most);
	return list;
}

static void set_means(json_t *share, const json_t *sums)
{
	double weight = json_real_value(json_array_get(sums, 3));

	for (size_t i = 0; i < ARRAY_SIZE(averaged); i++)
		json_object_set_new(share, averaged[i],
				    value_real(json_real_value(json_array_get(sums, i)) / weight));
	json_object_del(share, "serial");
	json_object_del(share, "why");
}

/* Members of the envelope, of one interval or one part. */
static const char *const of_one[] = {"schema_version", "time",	"run_id",     "seq",	     "activity",
				     "part",	       "parts", "start_time", "duration_ns", "merged"};

/* One interval is told as it is; of several, the mean. */
static json_t *joined_record(const struct stored_row *row)
{
	json_t *record = json_deep_copy(row->analysis), *shares = json_object_get(record, "shares"), *share;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(of_one); i++)
		json_object_del(record, of_one[i]);
	if (row->intervals == 1)
		return record;
	json_array_foreach(shares, i, share) {
		const json_t *sums = json_object_get(row->sums, string(share, "name"));

		if (sums)
			set_means(share, sums);
	}
	json_object_set_new(record, "verdict", judged_shares(shares, json_object_get(record, "verdict")));
	return record;
}

/* --- what counts make ------------------------------------------------------------------------- */

/* An event of the tree, of these sides, as the stream has it, under any name. */
static const struct stored_count *find_count(const struct stored_row *row, struct host *host,
					     const struct event *event, const struct perf_event_attr *sides)
{
	struct perf_event_attr wanted = event->attr;

	wanted.exclude_user |= sides->exclude_user;
	wanted.exclude_kernel |= sides->exclude_kernel;
	for (size_t i = 0; i < row->nr_counts; i++)
		if (!row->counts[i].uncounted && counts_the_same(&row->counts[i].attr, &wanted, host))
			return &row->counts[i];
	return NULL;
}

/* `units` are those that the whole has for each of its event: 4 slots in a cycle. */
static struct counted_ratio ratio_of(const struct stored_count *count, const struct stored_count *whole,
				     double units)
{
	struct counted_ratio ratio = {0};
	double low, high;

	if (!count || !whole || !(whole->value > 0))
		return ratio;
	ratio = (struct counted_ratio){.there = true, .value = count->value / whole->value / units};
	if (count == whole)
		return ratio;
	low = count->low / whole->high / units;
	high = whole->low > 0 ? count->high / whole->low / units : INFINITY;
	ratio.half = fmax(ratio.value - low, high - ratio.value);
	return ratio;
}

/* The sides of the counts of the whole: all, or only one of them. Returns the count; NULL: there is none. */
static const struct stored_count *find_whole(const struct stored_row *row, const struct tree *tree,
					     const struct events *events, struct host *host,
					     struct perf_event_attr *sides)
{
	static const struct perf_event_attr choices[] = {{0}, {.exclude_kernel = 1}, {.exclude_user = 1}};

	for (size_t i = 0; i < ARRAY_SIZE(choices); i++) {
		const struct stored_count *whole = find_count(
			row, host, &events->list[tree->formulas[tree->whole].places[0]], &choices[i]);

		*sides = choices[i];
		if (whole && whole->value > 0)
			return whole;
	}
	return NULL;
}

static double units_of(const struct tree *tree)
{
	const struct formula *whole = &tree->formulas[tree->whole].formula;
	double inputs[whole->nr_inputs + 1], units;
	char why[128];

	for (size_t i = 0; i < whole->nr_inputs; i++)
		inputs[i] = !i;
	return formula_value(whole, inputs, &units, why, sizeof(why)) || !(units > 0) ? 1 : units;
}

static json_t *make_record(const struct tree *tree, const struct counted_ratio *ratios)
{
	struct measured_share *measured = xcalloc(tree->nr_shares + 1, sizeof(*measured));
	struct checked_identity *checked = xcalloc(tree->nr_identities + 1, sizeof(*checked));
	struct measured_run counted = {.tree = tree, .ratios = ratios, .uncounted = NOT_IN_RECORDS};
	struct account account;
	json_t *record;

	measure_all(&counted, measured, checked);
	account_make(&account, tree->shares, tree->nr_shares, measured);
	record = analysis_record(tree, &account, checked);
	account_release(&account);
	free(measured);
	free(checked);
	return record;
}

static int refuse_counts(const struct stored_row *row, struct refusal *refusal)
{
	const char *name = string(json_object_get(json_object_get(row->start, "host"), "cpu"), "model_name");

	refuse(refusal, STATUS_REFUSED, "where the cycles went");
	because(refusal, "there is no tree of shares for the CPU of these records, %.80s",
		*name ? name : "which they do not name");
	return instead(refusal, "nhmtap show FILE shows the counts");
}

/* Counts of what the tree divides, in cycles or slots. */
static int refuse_whole(const struct tree *tree, struct refusal *refusal)
{
	const char *event = tree->formulas[tree->whole].formula.inputs[0];

	refuse(refusal, STATUS_USAGE, "where the %s went", tree->shares[tree->whole].name);
	because(refusal, "these records have no count of %s, of which all shares are parts", event);
	return instead(refusal, "give it what nhmtap analyze has written, or nhmtap stat -e %s,… -o FILE",
		       event);
}

/* The record by the counts of these events; NULL with the refusal. */
static json_t *analyse_events(const struct stored_row *row, struct host *host, const struct tree *tree,
			      const struct events *events, struct refusal *refusal)
{
	struct perf_event_attr sides;
	const struct stored_count *whole = find_whole(row, tree, events, host, &sides);
	struct counted_ratio *ratios;
	double units = units_of(tree);
	json_t *record;

	if (!whole) {
		refuse_whole(tree, refusal);
		return NULL;
	}
	ratios = xcalloc(events->nr + 1, sizeof(*ratios));
	for (size_t i = 0; i < events->nr; i++)
		ratios[i] = ratio_of(find_count(row, host, &events->list[i], &sides), whole, units);
	record = make_record(tree, ratios);
	free(ratios);
	if (sides.exclude_user || sides.exclude_kernel)
		json_object_set_new(record, "side", json_string(sides.exclude_user ? "kernel" : "user"));
	return record;
}

static json_t *analyse_by(const struct stored_row *row, struct host *host, struct refusal *refusal)
{
	struct events events = {0};
	struct tree tree;
	json_t *record = NULL;
	char *text = NULL;

	if (!tree_make(&tree, host, refusal)) {
		text = groups_text(&tree.groups);
		if (!events_parse(text, host, &events, refusal))
			record = analyse_events(row, host, &tree, &events, refusal);
	}
	free(text);
	events_release(&events);
	tree_release(&tree);
	return record;
}

/* The CPU of the records takes the place of this machine's. */
static json_t *analyse(const struct stored_counts *stored, const struct stored_row *row,
		       struct refusal *refusal)
{
	const json_t *cpu = json_object_get(json_object_get(row->start, "host"), "cpu");
	const struct processor_name name = {string(cpu, "vendor"), string(cpu, "model_name"),
					    integer(cpu, "family"), integer(cpu, "model")};
	struct host host;
	json_t *record = NULL;

	if (!command_host(&host, stored->options, refusal)) {
		if (!host_pretend_processor(&host, &name) || !host.events || !host.events->nr_shares) {
			refuse_counts(row, refusal);
		} else {
			snprintf(host.emulated.model, sizeof(host.emulated.model), "%.16s",
				 string(emulated_host(row->start), "model"));
			record = analyse_by(row, &host, refusal);
		}
	}
	host_release(&host);
	return record;
}

/* --- all of them ------------------------------------------------------------------------------ */

static void put_when(const struct stored_row *row, json_t *record)
{
	struct timespec since = timespec_of(row->since);

	if (json_object_get(record, "executions"))
		return;
	if (row->executions) {
		json_object_set_new(record, "executions", json_integer(row->executions));
		return;
	}
	json_object_set_new(record, "start_time", value_time(&since));
	json_object_set_new(record, "duration_ns", json_integer(row->duration_ns));
}

static int refuse_none(const struct stored_counts *stored, struct refusal *refusal)
{
	if (*refusal->asked)
		return -1;
	refuse(refusal, STATUS_USAGE, "where the cycles went");
	because(refusal, stored->samples ? "these records have samples, but no counts"
					 : "these records have no counts");
	return instead(refusal, stored->samples
					? "nhmtap show FILE shows what the samples stand for; nhmtap analyze "
					  "-o FILE writes records of shares"
					: "give it what nhmtap analyze or nhmtap stat writes with -o FILE");
}

json_t *stored_counts_analyses(struct stored_counts *stored, struct refusal *refusal)
{
	json_t *list = json_array();

	for (size_t i = 0; i < stored->nr; i++) {
		const struct stored_row *row = &stored->rows[i];
		struct refusal own = {0};
		json_t *record = row->analysis	  ? joined_record(row)
				 : row->nr_counts ? analyse(stored, row, &own)
						  : NULL;

		if (!record) {
			if (*own.asked && !*refusal->asked)
				*refusal = own;
			continue;
		}
		put_when(row, record);
		json_object_update_missing(record, row->keys);
		json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:O*}", "of", row->of, "activity",
						      row->activity, "record", record, "start", row->start));
	}
	if (json_array_size(list)) {
		*refusal = (struct refusal){0};
		return list;
	}
	json_decref(list);
	refuse_none(stored, refusal);
	return NULL;
}
