// SPDX-License-Identifier: GPL-2.0-only
#include "metric/metric.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/note.h"
#include "event/encoding.h"
#include "metric/groups.h"
#include "tables/names.h"

static const struct known_metric *find_in(const struct known_metric *list, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcasecmp(list[i].name, name))
			return &list[i];
	return NULL;
}

const struct known_metric *metric_find(const struct host *host, const char *name)
{
	const struct cpu_events *cpu = host->events;
	const struct known_metric *found = cpu ? find_in(cpu->metrics, cpu->nr_metrics, name) : NULL;

	return found ? found : find_in(host->tables.metrics, host->tables.nr_metrics, name);
}

/* --- refusals --------------------------------------------------------------------------------- */

bool metric_nearest(const struct host *host, const char *name, char *near, size_t size)
{
	struct nearest nearest;

	nearest_begin(&nearest, name, 3);
	for (size_t i = 0; host->events && i < host->events->nr_metrics; i++)
		nearest_offer(&nearest, host->events->metrics[i].name);
	for (size_t i = 0; i < host->tables.nr_metrics; i++)
		nearest_offer(&nearest, host->tables.metrics[i].name);
	return nearest_print(&nearest, near, size);
}

static int refuse_unknown(const struct host *host, const char *name, struct refusal *refusal)
{
	char near[400];

	refuse(refusal, STATUS_USAGE, "metric '%s'", name);
	because(refusal, "there is no metric of this name%s", host->events ? "" : " here");
	if (metric_nearest(host, name, near, sizeof(near)))
		return instead(refusal, "did you mean %s?", near);
	return instead(refusal, "see nhmtap list");
}

static int refuse_metric(const struct host *host, const char *name, struct refusal *refusal)
{
	char owners[160] = "";

	for (size_t i = 0; i < nr_known_cpus; i++)
		if (find_in(known_cpus[i].metrics, known_cpus[i].nr_metrics, name))
			list_append(owners, sizeof(owners), known_cpus[i].name);
	if (!owners[0])
		return refuse_unknown(host, name, refusal);
	refuse(refusal, STATUS_REFUSED, "metric '%s'", name);
	because(refusal, "it is one of %s, and this machine's CPU is %s family %u model %u", owners,
		host->cpu.vendor, host->cpu.family, host->cpu.model);
	return instead(refusal, "see nhmtap list for those that this machine has");
}

/* Adds to the refusal of an event the metric for which the event was asked. */
static int of_metric(const struct known_metric *known, struct refusal *refusal)
{
	char asked[400];

	snprintf(asked, sizeof(asked), "%.399s", refusal->asked);
	snprintf(refusal->asked, sizeof(refusal->asked), "metric '%.80s', %s", known->name, asked);
	return -1;
}

static int refuse_formula(const struct known_metric *known, const char *why, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "metric '%.80s'", known->name);
	return because(refusal, "its formula %s", why);
}

/* --- planning --------------------------------------------------------------------------------- */

static bool is_duration(const char *name)
{
	return !strcmp(name, FORMULA_DURATION);
}

/* The name of an input's event. If it has no modifiers, it gets those of the metric: ":u" of "ipc:u". The
 * caller frees it. */
static char *event_name(const struct metric *metric, size_t input)
{
	const char *event = metric->formula.inputs[input], *modifiers = strchr(metric->name, ':');
	char *name;

	name = xasprintf("%s%s", event, modifiers && !strchr(event, ':') ? modifiers : "");
	return name;
}

/* Adds the events of a metric to the groups. */
static int add_inputs(struct metric *metric, struct groups *groups, struct host *host,
		      struct refusal *refusal)
{
	char *names[metric->formula.nr_inputs];
	size_t nr = 0;

	for (size_t i = 0; i < metric->formula.nr_inputs; i++)
		if (!is_duration(metric->formula.inputs[i]))
			names[nr++] = event_name(metric, i);
	metric->group = groups_add(groups, names, nr, host, refusal);
	while (nr)
		free(names[--nr]);
	return metric->group < 0 ? of_metric(metric->known, refusal) : 0;
}

static void release_metric(struct metric *metric)
{
	formula_release(&metric->formula);
	free(metric->name);
	free(metric->events);
}

static void append_metric(struct metrics *metrics, const struct metric *metric)
{
	*xappend(metrics->list, metrics->nr) = *metric;
}

static int add_metric(struct metrics *metrics, char *name, struct groups *groups, struct host *host,
		      struct refusal *refusal)
{
	char *colon = strchrnul(name, ':'), kept = *colon;
	struct metric metric = {0};
	char why[128];

	for (size_t i = 0; i < metrics->nr; i++)
		if (!strcasecmp(metrics->list[i].name, name))
			return 0; /* named twice, reported once */
	*colon = '\0';
	metric.known = metric_find(host, name);
	if (!metric.known)
		return refuse_metric(host, name, refusal);
	*colon = kept;
	if (formula_parse(&metric.formula, metric.known->formula, why, sizeof(why)))
		return refuse_formula(metric.known, why, refusal);
	metric.name = xstrdup(name);
	metric.events = xcalloc(metric.formula.nr_inputs, sizeof(*metric.events));
	metric.explains = NO_EVENT;
	append_metric(metrics, &metric);
	return add_inputs(&metrics->list[metrics->nr - 1], groups, host, refusal);
}

/* --- patterns --------------------------------------------------------------------------------- */

static bool is_there(const struct event *event, struct host *host)
{
	__u32 type = event->attr.type;
	const struct generic_event *generic = generic_event_of(type, event->attr.config);

	if (type != PERF_TYPE_HARDWARE && type != PERF_TYPE_HW_CACHE && type != PERF_TYPE_RAW)
		return true;
	return host_core_pmu(host) && !(generic && generic_missing(host, generic) >= 0);
}

/* Whether this machine has an event, which may also be missing in its tables. */
static bool has_event(const char *name, struct host *host)
{
	struct events events = {0};
	struct refusal refusal;
	bool has = !events_parse(name, host, &events, &refusal);

	for (size_t i = 0; has && i < events.nr; i++)
		has = is_there(&events.list[i], host);
	events_release(&events);
	return has;
}

static bool has_events(const struct known_metric *known, struct host *host)
{
	struct formula formula;
	char why[128];
	bool has = true;

	if (formula_parse(&formula, known->formula, why, sizeof(why)))
		return false;
	for (size_t i = 0; has && i < formula.nr_inputs; i++)
		has = is_duration(formula.inputs[i]) || has_event(formula.inputs[i], host);
	formula_release(&formula);
	return has;
}

static int refuse_pattern(const struct host *host, const char *pattern, size_t nr_lacking,
			  struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "metric '%s'", pattern);
	if (!nr_lacking) {
		because(refusal, "the pattern fits no metric%s", host->events ? "" : " here");
		return instead(refusal, "see nhmtap list");
	}
	refusal->status = STATUS_REFUSED;
	because(refusal, "this machine lacks the events of all metrics that it fits");
	return instead(refusal, "nhmtap list '%.80s' shows them", pattern);
}

/* Adds the metrics that a pattern fits and that this machine has the events of. There must be one. */
static int add_pattern(struct metrics *metrics, char *pattern, struct groups *groups, struct host *host,
		       struct refusal *refusal)
{
	const struct cpu_events *cpu = host->events;
	const struct known_metric *lists[] = {cpu ? cpu->metrics : NULL, host->tables.metrics};
	const size_t sizes[] = {cpu ? cpu->nr_metrics : 0, host->tables.nr_metrics};
	const char *modifiers = strchrnul(pattern, ':');
	char *plain = xasprintf("%.*s", (int)(modifiers - pattern), pattern);
	size_t nr_there = 0, nr_lacking = 0;
	int err = 0;

	for (size_t l = 0; l < ARRAY_SIZE(lists); l++)
		for (size_t i = 0; !err && i < sizes[l]; i++) {
			char *name;

			if (fnmatch(plain, lists[l][i].name, FNM_CASEFOLD))
				continue;
			if (!has_events(&lists[l][i], host)) {
				nr_lacking++;
				note("metric %s is left out: this machine lacks an event of it",
				     lists[l][i].name);
				continue;
			}
			nr_there++;
			name = xasprintf("%s%s", lists[l][i].name, modifiers);
			err = add_metric(metrics, name, groups, host, refusal);
			free(name);
		}
	free(plain);
	return err || nr_there ? err : refuse_pattern(host, pattern, nr_lacking, refusal);
}

static int add_metrics(struct metrics *metrics, const char *names, struct groups *groups, struct host *host,
		       struct refusal *refusal)
{
	size_t length;
	int err = 0;

	for (const char *at = NULL; !err && (at = list_next(names, at, &length));) {
		char *name = xasprintf("%.*s", (int)length, at);

		err = (strpbrk(name, "*?[") ? add_pattern : add_metric)(metrics, name, groups, host, refusal);
		free(name);
	}
	return err;
}

/* Sets the index of each input's event in the plan, where the groups' events begin at `first`. */
static void find_inputs(struct metric *metric, const struct groups *groups, size_t first)
{
	for (size_t i = 0; i < metric->formula.nr_inputs; i++) {
		char *name = event_name(metric, i);

		metric->events[i] = is_duration(metric->formula.inputs[i])
					    ? NO_EVENT
					    : first + groups_place(groups, metric->group, name);
		free(name);
	}
}

int metrics_plan(struct metrics *metrics, const char *names, struct host *host, struct events *events,
		 struct refusal *refusal)
{
	struct groups groups = {0};
	size_t first = events->nr;
	char *text;
	int err = add_metrics(metrics, names, &groups, host, refusal);

	if (!err) {
		text = groups_text(&groups);
		err = events_parse(text, host, events, refusal);
		free(text);
	}
	for (size_t i = 0; !err && i < metrics->nr; i++)
		find_inputs(&metrics->list[i], &groups, first);
	groups_release(&groups);
	return err;
}

/* The index of the event of this name; NO_EVENT if there is none. */
static size_t place_of(const struct events *events, const char *name)
{
	for (size_t i = 0; i < events->nr; i++)
		if (!strcmp(events->list[i].name, name))
			return i;
	return NO_EVENT;
}

/* Sets the indices of the events of all inputs. Returns whether all are there. */
static bool bind(struct metric *metric, const struct events *events)
{
	for (size_t i = 0; i < metric->formula.nr_inputs; i++) {
		const char *input = metric->formula.inputs[i];

		metric->events[i] = is_duration(input) ? NO_EVENT : place_of(events, input);
		if (!is_duration(input) && metric->events[i] == NO_EVENT)
			return false;
		if (metric->explains == NO_EVENT)
			metric->explains = metric->events[i];
	}
	return metric->explains != NO_EVENT;
}

static void add_explaining(struct metrics *metrics, const struct known_metric *known,
			   const struct events *events)
{
	struct metric metric = {.known = known, .group = -1, .explains = NO_EVENT};
	char why[128];

	if (formula_parse(&metric.formula, known->formula, why, sizeof(why)))
		return;
	metric.name = xstrdup(known->name);
	metric.events = xcalloc(metric.formula.nr_inputs, sizeof(*metric.events));
	if (bind(&metric, events))
		append_metric(metrics, &metric);
	else
		release_metric(&metric);
}

void metrics_explain(struct metrics *metrics, const char *names, const struct host *host,
		     const struct events *events)
{
	size_t length;

	for (const char *at = NULL; (at = list_next(names, at, &length));) {
		char *name = xasprintf("%.*s", (int)length, at);
		const struct known_metric *known =
			find_in(host->tables.metrics, host->tables.nr_metrics, name);

		if (known)
			add_explaining(metrics, known, events);
		free(name);
	}
}

void metrics_release(struct metrics *metrics)
{
	for (size_t i = 0; i < metrics->nr; i++)
		release_metric(&metrics->list[i]);
	free(metrics->list);
	*metrics = (struct metrics){0};
}

/* --- values ----------------------------------------------------------------------------------- */

int metric_value(const struct metric *metric, const struct metric_input *inputs, double *value, char *why,
		 size_t size)
{
	const struct formula *formula = &metric->formula;
	double values[formula->nr_inputs];

	for (size_t i = 0; i < formula->nr_inputs; i++) {
		if (!inputs[i].running_share) {
			snprintf(why, size, "%s was not counted: %s", formula->inputs[i],
				 inputs[i].enabled ? "no counter was free for it" : "the target did not run");
			return -1;
		}
		values[i] = inputs[i].value;
	}
	return formula_value(formula, values, value, why, size);
}
