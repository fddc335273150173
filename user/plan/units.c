// SPDX-License-Identifier: GPL-2.0-only
#include "plan/units.h"

#include <errno.h>
#include <stdio.h>

#include "event/escr.h"

static int check_asked(const struct event *event, const struct options *options, struct refusal *refusal)
{
	if (options->msr)
		return 0;
	refuse(refusal, STATUS_USAGE, "event '%s'", event->name);
	because(refusal, "its counter is past Linux's drivers: it takes writing model-specific registers, "
			 "which nothing else arbitrates");
	return instead(refusal, "add --msr; nhmtap explain shows what is written");
}

static int refuse_counter(const struct event *event, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "event '%s'", event->name);
	refusal->error = ENOSPC;
	return -1;
}

/* Writes where the event could be counted: its ESCRs, with the counters of each. */
static void escrs_of(const struct event *event, char *text, size_t size)
{
	size_t used = 0;

	for (size_t e = 0; e < event->kind->nr_escrs && used < size; e++) {
		const struct unit_escr *escr = &event->kind->escrs[e];

		used += snprintf(text + used, size - used, "%s%s with", e ? ", or " : "", escr->name);
		for (size_t c = 0; c < event->msr->nr_counters && used < size; c++)
			if (escr->counters >> c & 1 && !event->msr->counters[c].unusable)
				used += snprintf(text + used, size - used, " %zu", c);
	}
}

static int check_cascade(const struct events *events, const struct event *event, struct refusal *refusal)
{
	const struct event *starter = escr_starter(events, event);

	refuse_counter(event, refusal);
	if (!starter) {
		because(refusal, "it cascades, and no event before it overflows to start it");
		according(refusal, "%s", event->msr->source);
		return instead(refusal, "give an event before it the term overflow=N");
	}
	because(refusal,
		"it cascades from '%s', and no two of the counters that are left for them are coupled",
		starter->name);
	according(refusal, "%s", event->msr->source);
	return instead(refusal,
		       "take events of the same group of counters (nhmtap explain shows them), each once");
}

static int check_escr(const struct events *events, const struct event *event, struct refusal *refusal)
{
	char escrs[200] = "";

	if (event->attr.config & CCCR_CASCADE)
		return check_cascade(events, event, refusal);
	escrs_of(event, escrs, sizeof(escrs));
	refuse_counter(event, refusal);
	because(refusal,
		"of what can count it, %s, the events before it leave nothing, and there is no taking turns",
		escrs);
	according(refusal, "%s", event->msr->source);
	return instead(refusal, "count the others in another run");
}

static int check_counter(const struct events *events, const struct event *event, struct refusal *refusal)
{
	if (event->unit_counter >= 0)
		return 0;
	if (event->msr->counters)
		return check_escr(events, event, refusal);
	refuse_counter(event, refusal);
	because(refusal, "%s has %zu counters for %s, and there is no taking turns with them",
		event->msr->name, event->kind->nr_counters, event->kind->name);
	according(refusal, "%s", event->msr->source);
	return instead(refusal, "count the others in another run");
}

/* Refuses a second metric: the registers that tag replayed micro-operations belong to the core, and hold one
 * value at a time. */
static int check_metric(const struct events *events, const struct event *event, struct refusal *refusal)
{
	for (const struct event *other = events->list; event->metric && other < event; other++) {
		if (!other->metric)
			continue;
		refuse_counter(event, refusal);
		because(refusal, "'%s' has a metric too, and a core marks by one of them", other->name);
		according(refusal, "%s", event->msr->source);
		return instead(refusal, "count it in another run");
	}
	return 0;
}

int units_fit(const struct events *events, struct refusal *refusal)
{
	for (size_t i = 0; i < events->nr; i++)
		if (events->list[i].msr && (check_counter(events, &events->list[i], refusal) ||
					    check_metric(events, &events->list[i], refusal)))
			return -1;
	return 0;
}

int units_check(const struct events *events, const struct options *options, struct refusal *refusal)
{
	for (size_t i = 0; i < events->nr; i++)
		if (events->list[i].msr && check_asked(&events->list[i], options, refusal))
			return -1;
	return units_fit(events, refusal);
}
