// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap analyze: where the cycles go. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "activity/activity.h"
#include "activity/doubt.h"
#include "activity/missing.h"
#include "activity/start.h"
#include "activity/tally.h"
#include "activity/uncounted.h"
#include "analyze/again.h"
#include "analyze/analysis_record.h"
#include "analyze/loads.h"
#include "analyze/stored.h"
#include "analyze/where.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/visible.h"
#include "event/encoding.h"
#include "host/idle.h"
#include "option/command.h"
#include "stat/expectation_record.h"

/* How often each group of events is counted, each time in an execution of its own. */
#define ROUNDS 3

/* Executions before those that are counted: the first finds its files, and the kernel's code, less near than
 * the others do. */
#define WARMING 1

struct analyze_options {
	__u64 rounds; /* -r, 0 if not given */
	bool once;    /* --once */
	__u64 where;  /* --where, 0 if not given */
	bool no_where;
	bool annotate;
	struct texts expect;
};

struct analysis {
	struct tree tree;
	struct tally tally;
	struct uncounted uncounted;
	struct events all; /* those of all groups; the plan has those of one execution */
	size_t group;	   /* the group of this execution; all if there are no repeats */
	struct moments *ratios;
	struct moments duration;
	struct moments whole; /* of an execution */
	struct halted halted; /* of all executions */
	struct idle idle;     /* of the CPUs, when the execution or interval began */
};

/* --- the plan --------------------------------------------------------------------------------- */

static int refuse_here(const struct host *host, struct refusal *refusal)
{
	refuse(refusal, STATUS_REFUSED, "where the cycles go");
	if (host->events)
		because(refusal, "there is no tree of shares for %s", host->events->title);
	else
		because(refusal, "there are no tables for this CPU, %s family %u model %u", host->cpu.vendor,
			host->cpu.family, host->cpu.model);
	return instead(refusal,
		       "nhmtap stat counts what this CPU has, nhmtap profile finds where time goes, and "
		       "nhmtap analyze --machine -- COMMAND runs the command on an emulated Nehalem");
}

static int check_host(struct host *host, struct refusal *refusal)
{
	if (!host_core_pmu(host)) {
		refuse(refusal, STATUS_REFUSED, "where the cycles go");
		because(refusal, "this machine exposes no hardware counters (is it a virtual machine?)");
		return instead(refusal, "nhmtap analyze --machine -- COMMAND counts on an emulated Nehalem; "
					"here, nhmtap profile finds where time goes");
	}
	return host->events && host->events->nr_shares ? 0 : refuse_here(host, refusal);
}

static int refuse_share(const struct host *host, const struct expectation *expectation,
			struct refusal *refusal)
{
	struct nearest nearest;
	char near[200];

	refuse(refusal, STATUS_USAGE, "option --expect '%.200s'", expectation->text);
	because(refusal, "there is no share '%.80s'", expectation->name);
	nearest_begin(&nearest, expectation->name, 3);
	for (size_t i = 0; i < host->events->nr_shares; i++)
		nearest_offer(&nearest, host->events->shares[i].name);
	return nearest_print(&nearest, near, sizeof(near))
		       ? instead(refusal, "did you mean %s?", near)
		       : instead(refusal, "the shares are those of the analysis record, such as memory_bound "
					  "and stalled");
}

static bool is_share(const struct host *host, const char *name)
{
	for (size_t i = 0; i < host->events->nr_shares; i++)
		if (!strcmp(host->events->shares[i].name, name))
			return true;
	return !strcmp(name, UNEXPLAINED);
}

static int plan_expectations(struct plan *plan, const struct texts *texts, const struct host *host,
			     struct refusal *refusal)
{
	for (size_t i = 0; i < texts->nr; i++) {
		struct expectation *expectation =
			share_expectation_add(&plan->expectations, texts->list[i], refusal);

		if (!expectation)
			return -1;
		if (!is_share(host, expectation->name))
			return refuse_share(host, expectation, refusal);
	}
	return 0;
}

static int plan_tree(struct plan *plan, struct host *host, struct refusal *refusal)
{
	struct tree tree;
	int err = tree_make(&tree, host, refusal);

	if (!err) {
		char *text = groups_text(&tree.groups);

		err = events_parse(text, host, &plan->events, refusal);
		free(text);
	}
	tree_release(&tree);
	return err;
}

static int plan_analyze(struct plan *plan, const struct options *options, struct host *host,
			struct refusal *refusal)
{
	const struct analyze_options *own = options->own;

	if (target_plan(&plan->target, options, host, refusal) || check_host(host, refusal) ||
	    plan_expectations(plan, &own->expect, host, refusal) || plan_tree(plan, host, refusal))
		return -1;
	return plan_counts(plan, options, host, refusal);
}

/* --- executions ------------------------------------------------------------------------------- */

static bool is_repeated(const struct activity *activity)
{
	return activity->options->repeats;
}

static void choose_group(struct activity *activity)
{
	struct analysis *analysis = activity->state;

	if (!is_repeated(activity))
		return;
	activity->plan.events.list = analysis->all.list + tree_first(&analysis->tree, analysis->group);
	activity->plan.events.nr = tree_size(&analysis->tree, analysis->group);
}

/* Whether each execution is counted as a whole, with nothing else that goes on and on. */
static bool is_whole(const struct activity *activity)
{
	const struct target *target = &activity->plan.target;

	return target_is_command(target) ||
	       (target->cpus_given && !target->per && !target_in_cgroups(target));
}

/* A command is run again if it is the only one that measures, and nothing else was asked for. */
static __u64 repeats_of(const struct activity *activity)
{
	const struct options *options = activity->options;
	const struct analyze_options *own = options->own;
	const struct analysis *analysis = activity->state;

	if (!activity->session->alone || !activity->session->command || !is_whole(activity) || own->once ||
	    options->interval_ms || options->delay_ms)
		return 0;
	return WARMING + analysis->tree.groups.nr * (own->rounds ? own->rounds : ROUNDS);
}

static int check_repeats(const struct activity *activity, struct refusal *refusal)
{
	const struct options *options = activity->options;
	const struct analyze_options *own = options->own;

	if (own->annotate && (own->no_where || own->once || options->interval_ms || options->delay_ms)) {
		refuse(refusal, STATUS_USAGE, "option --annotate");
		because(refusal, "code is sampled in further runs, which --%s leaves out",
			own->no_where	       ? "no-where"
			: own->once	       ? "once"
			: options->interval_ms ? "interval"
					       : "delay");
		return instead(refusal, "nhmtap profile --annotate FUNCTION shows the code of a function");
	}
	if (!own->rounds || repeats_of(activity))
		return 0;
	refuse(refusal, STATUS_USAGE, "option --repeat");
	because(refusal, own->once ? "--once runs COMMAND once"
			 : options->interval_ms
				 ? "several executions are reported once, and --interval asks for more"
			 : options->delay_ms ? "--delay counts a part of an execution"
					     : "there is no COMMAND that is measured, to be run again");
	return instead(refusal, "nhmtap analyze -r 5 -- COMMAND");
}

static __u64 most_sampled(const struct analyze_options *own)
{
	return own->where ? own->where : WHERE_DEFAULT;
}

static void say_repeats(const struct activity *activity)
{
	const struct analyze_options *own = activity->options->own;
	const struct analysis *analysis = activity->state;
	char samples[150] = "";

	if (activity->options->quiet)
		return;
	if (!own->no_where)
		snprintf(samples, sizeof(samples),
			 ", then up to %llu times to sample loads and the largest shares, or more where the "
			 "kernel pauses that",
			 1 + most_sampled(own) * (own->annotate ? 2 : 1));
	say("nhmtap: the command is run %llu times: once to warm up, and %llu times for each of %zu groups "
	    "of events%s; --once runs it once",
	    activity->options->repeats, (activity->options->repeats - WARMING) / analysis->tree.groups.nr,
	    analysis->tree.groups.nr, samples);
}

static int analyze_check(struct activity *activity, struct refusal *refusal)
{
	struct host *host = &activity->session->host;
	struct analysis *analysis = xcalloc(1, sizeof(*analysis));

	activity->state = analysis;
	analysis->all = activity->plan.events;
	if (tree_make(&analysis->tree, host, refusal) || check_repeats(activity, refusal))
		return -1;
	activity->options->repeats = repeats_of(activity);
	if (is_repeated(activity)) {
		analysis->ratios = xcalloc(analysis->all.nr + 1, sizeof(*analysis->ratios));
		say_repeats(activity);
	}
	tally_begin(&analysis->tally, &activity->plan, host);
	idle_read(&analysis->idle);
	activity->drain_ns = is_repeated(activity) ? 0 : analysis->tally.span_ns;
	return 0;
}

/* The plan has the events of the first execution only. */
static void analyze_describe(struct activity *activity, json_t *start)
{
	const struct analysis *analysis = activity->state;
	json_t *events;

	if (!is_repeated(activity))
		return;
	events = json_array();
	for (size_t i = 0; i < analysis->all.nr; i++)
		json_array_append_new(events, event_value(&analysis->all.list[i], &activity->session->host));
	json_object_set_new(start, "events", events);
	json_object_set_new(start, "repeats", json_integer(activity->options->repeats));
}

/* --- records ---------------------------------------------------------------------------------- */

static int report_share(struct activity *activity, const struct account *account,
			const struct expectation *expectation)
{
	const struct accounted_share *share = account_find(account, expectation->name);
	const struct analysis *analysis = activity->state;
	struct expected_finding finding = {
		.there = share->there,
		.value = 100 * share->share,
		.bound = {.low = 100 * share->low, .high = 100 * share->high, .turns = analysis->duration.n},
		.unit = "%",
		.why = share->why};
	bool quiet = activity->options->quiet || session_all_people(activity->session);

	return activity_write(activity, share_expectation_record(expectation, &finding, quiet,
								 &activity->session->verdict));
}

static void put_when(struct activity *activity, json_t *record, const struct tally_row *row)
{
	struct analysis *analysis = activity->state;

	if (host_two_threads(&activity->session->host))
		json_object_set_new(record, "cores_shared", json_true());
	if (is_repeated(activity)) {
		json_object_set_new(record, "executions", json_integer(analysis->duration.n));
		return;
	}
	tally_put(record, &analysis->tally, row);
	activity_put_interval(activity, record);
	activity_put_missing(activity, record, &row->cpus, row->key.cgroup);
}

/* --- where it is ------------------------------------------------------------------------------ */

/* Whether the same can be run or watched once more, and nothing else goes on meanwhile. */
static bool may_look_again(const struct activity *activity)
{
	const struct options *options = activity->options;
	const struct analyze_options *own = options->own;

	return !own->no_where && activity->session->alone && !own->once && !options->interval_ms &&
	       !options->delay_ms && !activity->plan.target.per && !activity->session->ended_by &&
	       (is_repeated(activity) || (!activity->session->command && options->duration_s > 0));
}

/* The event that a share's command samples, as a list of one; empty if it names none. */
static void located_event(const struct known_share *known, struct host *host, struct events *located)
{
	const char *event = known->locate ? strstr(known->locate, "-e ") : NULL;
	struct refusal ignored = {0};
	char name[128];

	if (!event)
		return;
	event += strlen("-e ");
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(event, " "), event);
	events_parse(name, host, located, &ignored);
}

/* How often the event that a share's command samples occurs, whatever name the tree has for it. If it is not
 * counted, about as often as what the share counts. */
static double occurrences_of(const struct activity *activity, const struct measured_run *counted,
			     const struct known_share *known, const struct measured_share *measured)
{
	const struct analysis *analysis = activity->state;
	struct host *host = &activity->session->host;
	struct events located = {0};
	double occurred = 0;

	located_event(known, host, &located);
	for (size_t i = 0; located.nr && i < analysis->all.nr && !occurred; i++)
		if (counts_the_same(&located.list[0].attr, &analysis->all.list[i].attr, host))
			occurred = measure_event(counted, i);
	events_release(&located);
	return occurred || !measured || !measured->there ? occurred : counted->whole * measured->value;
}

/* The part of the whole that loads from beyond the first level can take, at most. */
static double loads_most(const struct account *account)
{
	double most = 0;

	for (size_t i = 0; i < account->nr; i++)
		if (account->list[i].known->sources && account->list[i].there)
			most += account->list[i].high;
	return most;
}

/* How often the first level did not have what a load wanted. */
static double loads_beyond(const struct measured_run *counted, const struct measured_share *measured)
{
	double sum = 0;

	for (size_t i = 0; i < counted->tree->nr_shares; i++)
		if (counted->tree->shares[i].sources && measured[i].there)
			sum += counted->whole * measured[i].value;
	return sum;
}

/* Takes from a measured cost what its latency has, but another share: by how much a load waits for that on
 * average. At the most, only such loads wait for it, of which there are `own`; but the table's cost is not
 * undercut by that. */
static void take_out(struct cost_range *cost, const struct account *account, const struct known_share *known,
		     double own, double loads)
{
	double usual = 0, most = 0, least = fmin(cost->low, known->cost_low);

	for (size_t i = 0; i < account->nr; i++)
		if (account->list[i].known->in_latency && account->list[i].there) {
			usual += account->list[i].serial;
			most += account->list[i].most;
		}
	cost->low = own > 0 ? fmax(least, cost->low - most / own) : least;
	cost->usual = fmax(cost->low, cost->usual - usual / loads);
}

/* Where the kernel paused the sampling, loads that come densely are missing among the samples, and theirs may
 * be another cost: the bounds have the table's range, too. */
static void allow_for_pauses(struct cost_range *cost, const struct known_share *known, double paused)
{
	cost->throttled = paused;
	if (!paused)
		return;
	cost->low = fmin(cost->low, known->cost_low);
	cost->high = fmax(cost->high, known->cost_high);
}

/* Measures what loads cost, if that can matter, and makes the account anew. Returns the samples, a new
 * reference; NULL: none. */
static json_t *measure_costs(struct activity *activity, const struct measured_run *counted,
			     struct account *account, struct measured_share *measured)
{
	const struct tree *tree = counted->tree;
	double loads = loads_beyond(counted, measured);
	json_t *records;

	if (loads_most(account) < WHERE_LEAST)
		return NULL;
	records = loads_sample(activity, loads, where_samples(counted->whole));
	for (size_t i = 0; records && i < tree->nr_shares; i++)
		if (tree->shares[i].sources &&
		    loads_cost(records, tree->shares[i].sources, &measured[i].cost)) {
			take_out(&measured[i].cost, account, &tree->shares[i], measured[i].value,
				 loads / counted->whole);
			allow_for_pauses(&measured[i].cost, &tree->shares[i],
					 again_sum(records, "throttled"));
		}
	account_release(account);
	account_make(account, tree->shares, tree->nr_shares, measured);
	return records;
}

/* Adds the data of the shares that are loads. */
static void put_data(const struct account *account, const json_t *records, json_t *record)
{
	for (size_t i = 0; records && i < account->nr; i++) {
		const struct accounted_share *share = &account->list[i];
		json_t *to, *pages;

		if (!share->there || share->share < WHERE_LEAST || !share->known->sources)
			continue;
		to = share_in(record, share->known->name);
		pages = loads_pages(records, share->known->sources);
		if (!pages)
			continue;
		json_object_set_new(to, "data", pages);
		json_object_set_new(to, "objects", loads_objects(records, share->known->sources));
	}
}

static void find_where(struct activity *activity, const struct measured_run *counted,
		       const struct account *account, const struct measured_share *measured, json_t *record,
		       json_t *annotations)
{
	const struct analyze_options *own = activity->options->own;
	struct occurrences occurrences = {.whole = counted->whole,
					  .shares = xcalloc(account->nr + 1, sizeof(*occurrences.shares))};

	for (size_t i = 0; i < account->nr; i++)
		occurrences.shares[i] = occurrences_of(activity, counted, account->list[i].known,
						       i < counted->tree->nr_shares ? &measured[i] : NULL);
	where_add(activity, account, &occurrences, most_sampled(own), record,
		  own->annotate ? annotations : NULL);
	free(occurrences.shares);
}

/* --- the record of an interval ---------------------------------------------------------------- */

/* Of a record of another run; the stream gives it its own. Returns a new reference. */
static json_t *without_envelope(const json_t *record)
{
	static const char *const envelope[] = {"schema_version", "time", "run_id", "seq", "activity"};
	json_t *copy = json_copy((json_t *)record);

	for (size_t i = 0; i < ARRAY_SIZE(envelope); i++)
		json_object_del(copy, envelope[i]);
	return copy;
}

/* Writes the account of what was counted, and with `last` whether it is as expected. */
static int write_account(struct activity *activity, const struct measured_run *counted,
			 const struct tally_row *row, bool last)
{
	const struct tree *tree = counted->tree;
	struct measured_share *measured = xcalloc(tree->nr_shares + 1, sizeof(*measured));
	struct checked_identity *checked = xcalloc(tree->nr_identities + 1, sizeof(*checked));
	bool again = last && may_look_again(activity);
	json_t *record, *loads = NULL, *annotations = json_array(), *annotation;
	struct account account;
	size_t i;
	int err;

	measure_all(counted, measured, checked);
	account_make(&account, tree->shares, tree->nr_shares, measured);
	if (again)
		loads = measure_costs(activity, counted, &account, measured);
	record = analysis_record(tree, &account, checked);
	put_when(activity, record, row);
	if (again)
		find_where(activity, counted, &account, measured, record, annotations);
	put_data(&account, loads, record);
	json_decref(loads);
	err = activity_write(activity, record);
	json_array_foreach(annotations, i, annotation)
		err = err ? err : activity_write(activity, without_envelope(annotation));
	json_decref(annotations);
	for (size_t e = 0; last && !err && e < activity->plan.expectations.nr; e++)
		err = report_share(activity, &account, &activity->plan.expectations.list[e]);
	account_release(&account);
	free(measured);
	free(checked);
	return err;
}

/* --- intervals -------------------------------------------------------------------------------- */

static int analyze_drain(struct activity *activity)
{
	struct analysis *analysis = activity->state;

	cgroup_watch_gather(activity);
	tally_look(&analysis->tally, activity->counters);
	activity->drain_ns = tally_pace(&analysis->tally, activity->drain_ns, activity->options->interval_ms);
	return 0;
}

/* Adds the time since the previous call in which nothing ran. The kernel tells that of CPUs in its ticks; a
 * program is halted while it does not run. */
static void add_halted(const struct activity *activity, const struct cpus *cpus, const struct count *counts,
		       struct halted *halted)
{
	const struct analysis *analysis = activity->state;
	const struct target *target = &activity->plan.target;
	double elapsed = activity_interval_ns(activity) / 1e9, ran = 0;

	if (target_in_cgroups(target))
		return;
	if (target->cpus_given) {
		halted->time += idle_beyond(&analysis->idle, cpus);
		halted->elapsed += elapsed * cpus_count(cpus);
		halted->doubt += (double)cpus_count(cpus) / sysconf(_SC_CLK_TCK);
		return;
	}
	for (size_t i = 0; i < activity->plan.events.nr; i++)
		ran = fmax(ran, counts[i].enabled_ns / 1e9);
	halted->time += fmax(0, elapsed - ran);
	halted->elapsed += elapsed;
}

/* The least part of the time that is all of it. The kernel takes some of it to change groups. */
#define NEARLY_ALL 0.99

/* What was counted by several groups, some of them at the same time, as one of them would have counted it.
 * What was counted in all turns is the count of the whole time; what was counted in some turns stays an
 * estimate, since the target may have done something else in the others. */
static void as_one(struct count *sum)
{
	if (sum->running_ns > sum->enabled_ns) {
		sum->value *= (double)sum->enabled_ns / sum->running_ns;
		sum->running_ns = sum->enabled_ns;
	}
	if (sum->running_ns >= sum->enabled_ns * NEARLY_ALL)
		sum->enabled_ns = sum->running_ns;
}

/* Looks at the counts of all groups, of which an execution has one. What several groups count, in turns, is
 * looked at as one count. */
static int doubt_groups(struct activity *activity, size_t row, const struct count *counts, bool last)
{
	const struct analysis *analysis = activity->state;
	const struct events *all = &analysis->all;
	struct count *sums = xcalloc(all->nr + 1, sizeof(*sums));
	int err;

	for (size_t i = 0; i < all->nr; i++) {
		size_t first = 0;

		while (strcmp(all->list[first].name, all->list[i].name))
			first++;
		sums[first].value += counts[i].value;
		sums[first].running_ns += counts[i].running_ns;
		if (counts[i].enabled_ns > sums[first].enabled_ns)
			sums[first].enabled_ns = counts[i].enabled_ns;
	}
	for (size_t i = 0; i < all->nr; i++)
		as_one(&sums[i]);
	err = doubt_counts(activity, all, row, sums, last);
	free(sums);
	return err;
}

/* Adds an execution's counts to those of the others. The counts of the other groups have no time. */
static int add_execution(struct activity *activity)
{
	struct analysis *analysis = activity->state;
	struct count *counts;
	double whole;
	int err;

	if (activity->session->repeat <= WARMING || activity_partial(activity))
		return 0;
	counts = xcalloc(analysis->all.nr + 1, sizeof(*counts));
	moments_add(&analysis->duration, activity_interval_ns(activity));
	if (analysis->tally.nr)
		memcpy(counts + tree_first(&analysis->tree, analysis->group), analysis->tally.rows[0].now,
		       tree_size(&analysis->tree, analysis->group) * sizeof(*counts));
	measure_add(&analysis->tree, counts, analysis->ratios);
	if (analysis->tally.nr)
		add_halted(activity, &analysis->tally.rows[0].cpus, analysis->tally.rows[0].now,
			   &analysis->halted);
	if (!tree_whole(&analysis->tree, analysis->group, counts, false, &whole))
		moments_add(&analysis->whole, whole);
	err = doubt_groups(activity, 0, counts, activity->session->repeat == activity->options->repeats);
	free(counts);
	return err;
}

static int analyze_report(struct activity *activity, bool last)
{
	struct analysis *analysis = activity->state;
	int err = 0;

	cgroup_watch_gather(activity);
	tally_read(&analysis->tally, activity->counters, last);
	if (activity_cut(activity))
		tally_void(&analysis->tally);
	if (last)
		uncounted_note(&analysis->uncounted, activity, &analysis->tally);
	if (is_repeated(activity))
		return add_execution(activity);
	for (size_t r = 0; r < analysis->tally.nr && !err && !activity_cut(activity); r++)
		err = doubt_groups(activity, r, analysis->tally.rows[r].since, last);
	activity->drain_ns = tally_pace(&analysis->tally, activity->drain_ns, activity->options->interval_ms);
	for (size_t r = 0; r < analysis->tally.nr && !err; r++) {
		const struct tally_row *row = &analysis->tally.rows[r];
		struct measured_run counted = {.tree = &analysis->tree,
					       .counts = row->since,
					       .turns = &row->interval_turns,
					       .activity = activity};

		add_halted(activity, &row->cpus, row->since, &counted.halted);

		tree_whole(&analysis->tree, 0, row->since, true, &counted.whole);
		if (tally_has(&analysis->tally, row))
			err = write_account(activity, &counted, row, last);
	}
	idle_read(&analysis->idle);
	return err;
}

/* Each execution counts another group, from 0. */
static void analyze_prepare(struct activity *activity)
{
	struct analysis *analysis = activity->state;

	if (!is_repeated(activity))
		return;
	analysis->group = (activity->session->repeat - 1 + analysis->tree.groups.nr - WARMING) %
			  analysis->tree.groups.nr;
	tally_release(&analysis->tally);
	choose_group(activity);
	idle_read(&analysis->idle);
	tally_begin(&analysis->tally, &activity->plan, &activity->session->host);
}

static int analyze_finish(struct activity *activity, json_t *end)
{
	struct analysis *analysis = activity->state;
	struct counted_ratio *ratios;
	struct measured_run counted;
	int err;

	if (!analysis)
		return 0;
	uncounted_say(&analysis->uncounted, activity);
	if (!analysis->duration.n && !activity_partial(activity))
		return 0;
	ratios = measure_ratios(analysis->ratios, analysis->all.nr);
	counted = (struct measured_run){.tree = &analysis->tree,
					.ratios = ratios,
					.whole = analysis->whole.mean,
					.halted = analysis->halted,
					.partial = activity_partial(activity)};
	err = write_account(activity, &counted, NULL, true);
	free(ratios);
	return err;
}

/* The plan has all events again when it is released. */
static void analyze_release(struct activity *activity)
{
	struct analysis *analysis = activity->state;

	if (!analysis)
		return;
	activity->plan.events = analysis->all;
	tally_release(&analysis->tally);
	tree_release(&analysis->tree);
	free(analysis->ratios);
	idle_release(&analysis->idle);
	uncounted_release(&analysis->uncounted);
	free(analysis);
}

static const struct activity_ops analyze_ops = {
	.plan = plan_analyze,
	.check = analyze_check,
	.describe = analyze_describe,
	.prepare = analyze_prepare,
	.attach = activity_attach_reader,
	.drain = analyze_drain,
	.report = analyze_report,
	.finish = analyze_finish,
	.release = analyze_release,
};

static int choose(struct activity *activity, struct refusal *refusal)
{
	activity->ops = &analyze_ops;
	return 0;
}

static const struct activity_type type = {choose, .records = "analysis"};

/* --- the command ------------------------------------------------------------------------------ */

static const struct option_row rows[] = {
	{'r', "repeat", "N", OPTION_NUMBER, OWN(struct analyze_options, rounds), .least = 2, .most = 1000,
	 .line_only = true,
	 .help = "run COMMAND until each group of events was counted in N executions (default 3)"},
	{0, "once", NULL, OPTION_FLAG, OWN(struct analyze_options, once), .line_only = true,
	 .help = "run COMMAND once; the groups of events take turns"},
	{0, "where", "N", OPTION_NUMBER, OWN(struct analyze_options, where), .least = 1, .most = 20,
	 .line_only = true,
	 .help = "afterwards sample the code of the N largest shares (default 3): in another run of COMMAND "
		 "or, with --duration, for as long again"},
	{0, "no-where", NULL, OPTION_FLAG, OWN(struct analyze_options, no_where), .line_only = true,
	 .help = "only count: do not sample the code of the largest shares"},
	{0, "annotate", NULL, OPTION_FLAG, OWN(struct analyze_options, annotate), .line_only = true,
	 .help = "show the code of the function that has most of each of these shares: source lines and "
		 "instructions with their samples, in one more run each"},
	{0, "expect", "EXPR", OPTION_TEXTS, OWN(struct analyze_options, expect),
	 .help = "exit 4 unless it holds; repeatable: 'memory_bound<20%'"},
	{0},
};

static int analyze_stored(const struct options *options, struct refusal *refusal)
{
	const struct analyze_options *own = options->own;

	if (!own->rounds && !own->once && !own->where && !own->annotate)
		return stored_analyze(options, &own->expect, refusal);
	refuse(refusal, STATUS_USAGE, "option --%s",
	       own->rounds  ? "repeat"
	       : own->once  ? "once"
	       : own->where ? "where"
			    : "annotate");
	because(refusal, "the records of a file are measured already");
	instead(refusal, "nhmtap analyze FILE, or -- COMMAND to run one");
	return refusal->status;
}

static const struct command analyze = {
	.name = "analyze",
	.arguments = "[OPTIONS] [FILE [FILE] | -- COMMAND …]",
	.help = "tells where the cycles go, and how sure that is; of stored records too, and what two differ "
		"in",
	.options = {rows, target_rows, per_rows, interval_rows, stream_rows, format_rows, screen_rows,
		    plan_rows, table_rows, host_rows, machine_rows, help_rows},
	.own_size = sizeof(struct analyze_options),
	.activity = &type,
	.reads = stored_asked,
	.run = analyze_stored,
};
REGISTER_COMMAND(analyze);
