// SPDX-License-Identifier: GPL-2.0-only
#include "stat/expect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "event/encoding.h"

/* Whether the name is a metric's, modifiers ignored: "ipc:u" is the metric ipc, for user space only. */
static bool names_metric(const struct host *host, const char *name)
{
	char plain[160];

	snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(name, ":"), name);
	return metric_find(host, plain);
}

/* A metric of a table of the user's may have this name too, and is meant then; so is an event that was given
 * the name. */
static bool is_elapsed(const char *name)
{
	return !strcasecmp(name, "elapsed") || !strcasecmp(name, "duration_time");
}

static enum expected_of kind_of(const struct host *host, const char *name)
{
	return names_metric(host, name) ? OF_METRIC : is_elapsed(name) ? OF_ELAPSED : OF_EVENT;
}

int expect_parse(struct plan *plan, const struct texts *texts, const struct host *host,
		 struct refusal *refusal)
{
	for (size_t i = 0; i < texts->nr; i++) {
		struct expectation *expectation =
			expectations_add(&plan->expectations, texts->list[i], refusal);

		if (!expectation)
			return -1;
		expectation->of = kind_of(host, expectation->name);
	}
	return 0;
}

bool expect_counts(const struct plan *plan)
{
	for (size_t i = 0; i < plan->expectations.nr; i++)
		if (plan->expectations.list[i].of != OF_ELAPSED)
			return true;
	return false;
}

char *expect_metrics(const struct plan *plan, const struct options *options)
{
	char *text = NULL;
	size_t size;
	FILE *file = xopen_memstream(&text, &size);

	fprintf(file, "%s", options->metrics ? options->metrics : "");
	for (size_t i = 0; i < plan->expectations.nr; i++)
		if (plan->expectations.list[i].of == OF_METRIC)
			fprintf(file, "%s%s", ftell(file) ? "," : "", plan->expectations.list[i].name);
	xclose_memstream(file);
	if (size)
		return text;
	free(text);
	return NULL;
}

static void bind_metric(const struct plan *plan, struct expectation *expectation)
{
	while (strcasecmp(plan->metrics.list[expectation->place].name, expectation->name))
		expectation->place++;
}

/* Adds to the refusal of an event the expectation that asked for it, and suggests metrics with a similar
 * name. */
static int of_expectation(const struct expectation *expectation, const struct host *host,
			  struct refusal *refusal)
{
	char asked[400], near[400];

	if (metric_nearest(host, expectation->name, near, sizeof(near)))
		instead(refusal, "did you mean the metric %s?", near);
	snprintf(asked, sizeof(asked), "%.399s", refusal->asked);
	snprintf(refusal->asked, sizeof(refusal->asked), "expectation '%.80s', %s", expectation->text, asked);
	return -1;
}

/* Whether an event that is counted anyway has the name. */
static bool find_event(const struct plan *plan, struct expectation *expectation)
{
	for (size_t i = 0; i < plan->events.nr; i++)
		if (!strcasecmp(plan->events.list[i].name, expectation->name)) {
			expectation->place = i;
			return true;
		}
	return false;
}

/* Whether name= has given the event's name to something else as well. */
static bool is_ambiguous(const struct plan *plan, size_t place, struct host *host)
{
	const struct event *list = plan->events.list;

	for (size_t i = place + 1; i < plan->events.nr; i++)
		if (!strcasecmp(list[i].name, list[place].name) &&
		    !counts_the_same(&list[i].attr, &list[place].attr, host))
			return true;
	return false;
}

static int bind_event(struct plan *plan, struct host *host, struct expectation *expectation,
		      struct refusal *refusal)
{
	size_t before = plan->events.nr;

	if (find_event(plan, expectation)) {
		if (!is_ambiguous(plan, expectation->place, host))
			return 0;
		refuse(refusal, STATUS_USAGE, "option --expect '%.200s'", expectation->text);
		because(refusal, "events that count different things have this name");
		return instead(refusal, "give each a name of its own with name=");
	}
	if (events_parse(expectation->name, host, &plan->events, refusal))
		return of_expectation(expectation, host, refusal);
	expectation->place = before;
	if (plan->events.nr == before + 1)
		return 0;
	refuse(refusal, STATUS_USAGE, "option --expect '%.200s'", expectation->text);
	because(refusal, "it names several events");
	return instead(refusal, "write an expectation for each");
}

static const char *unit_of(const struct plan *plan, const struct expectation *expectation)
{
	switch (expectation->of) {
	case OF_METRIC:
		return plan->metrics.list[expectation->place].known->unit;
	case OF_ELAPSED:
		return "ns";
	case OF_EVENT:
		break;
	}
	return plan->events.list[expectation->place].unit;
}

/* A limit in seconds suits only what is counted in nanoseconds, and one in percent what is in percent. A bare
 * number for the elapsed time would be taken for seconds by some, and is in nanoseconds elsewhere. */
static int check_unit(const struct plan *plan, const struct expectation *expectation, struct refusal *refusal)
{
	const char *unit = unit_of(plan, expectation);

	if (expectation->of == OF_ELAPSED && !expectation->is_time) {
		refuse(refusal, STATUS_USAGE, "option --expect '%.200s'", expectation->text);
		because(refusal, "its limit has no unit of time");
		return instead(refusal, "write ns, us, ms or s behind the number: 'elapsed<2s'");
	}
	if ((!expectation->is_time || !strcmp(unit, "ns")) &&
	    (!expectation->is_percent || !strcmp(unit, "%")))
		return 0;
	refuse(refusal, STATUS_USAGE, "option --expect '%.200s'", expectation->text);
	because(refusal, "'%.80s' is no %s: it is %s%s", expectation->name,
		expectation->is_time ? "time" : "share in percent", *unit ? "in " : "a number", unit);
	return instead(refusal, "leave out the unit of the limit");
}

int expect_bind(struct plan *plan, struct host *host, struct refusal *refusal)
{
	for (size_t i = 0; i < plan->expectations.nr; i++) {
		struct expectation *expectation = &plan->expectations.list[i];

		if (expectation->of == OF_ELAPSED && find_event(plan, expectation))
			expectation->of = OF_EVENT;
		if (expectation->of == OF_METRIC)
			bind_metric(plan, expectation);
		else if (expectation->of == OF_EVENT && bind_event(plan, host, expectation, refusal))
			return -1;
		if (check_unit(plan, expectation, refusal))
			return -1;
	}
	return 0;
}
