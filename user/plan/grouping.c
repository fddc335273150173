// SPDX-License-Identifier: GPL-2.0-only
#include "plan/grouping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "event/encoding.h"
#include "event/placement.h"
#include "metric/fit.h"

/* The end of the group that begins at event `first`; the next event if it is in no group. */
static size_t end_of_group(const struct events *events, size_t first)
{
	size_t end = first + 1;

	while (end < events->nr && !event_leads(events, end))
		end++;
	return end;
}

static void append_events(struct events *some, const struct events *events, size_t first, size_t end)
{
	memcpy(some->list + some->nr, events->list + first, (end - first) * sizeof(*some->list));
	some->nr += end - first;
}

/* Whether the events from `first` up to, but not including, `end` fit the counters at the same time, beside
 * the pinned groups outside of them. Those are always counted before others: ctx_sched_in(),
 * kernel/events/core.c; of too many, the first that fit. */
static bool fit_together(const struct events *events, size_t first, size_t end, struct host *host)
{
	struct events some = {xcalloc(events->nr + 1, sizeof(*some.list)), 0};
	size_t next;
	bool fits;

	for (size_t i = 0; i < events->nr; i = next) {
		size_t before = some.nr;

		next = end_of_group(events, i);
		if (!events->list[i].attr.pinned || (i >= first && i < end))
			continue;
		append_events(&some, events, i, next);
		if (!events_fit(&some, host))
			some.nr = before;
	}
	append_events(&some, events, first, end);
	fits = events_fit(&some, host);
	free(some.list);
	return fits;
}

/* Whether the event may be put into a group. Only the first of a group can be pinned or exclusive, which
 * would make all of it so. */
static bool alone_on_core(const struct event *event, struct host *host)
{
	struct encoding encoding;

	return event->group < 0 && !event->attr.pinned && !event->attr.exclusive &&
	       encoding_of(&event->attr, host, &encoding);
}

/* Takes apart the groups with the modifier W that don't fit the counters, as perf does: "weak group". */
static void part_weak_groups(struct events *events, struct host *host)
{
	size_t end;

	for (size_t first = 0; first < events->nr; first = end) {
		struct events group = {events->list + first, end_of_group(events, first) - first};

		end = first + group.nr;
		if (group.nr == 1 || !group.list[0].weak || events_fit(&group, host))
			continue;
		for (size_t i = 0; i < group.nr; i++) {
			group.list[i].group = -1;
			event_note(&group.list[i], "its group, which has the modifier W, does not fit the "
						   "counters and was taken apart");
		}
	}
}

static int next_group(const struct events *events)
{
	int next = 0;

	for (size_t i = 0; i < events->nr; i++)
		if (events->list[i].group >= next)
			next = events->list[i].group + 1;
	return next;
}

void grouping_form(struct events *events, struct host *host)
{
	size_t end;

	part_weak_groups(events, host);
	if (!host->events || fit_together(events, 0, events->nr, host))
		return;
	for (size_t first = 0; first < events->nr; first = end) {
		int group = next_group(events);

		end = first + 1;
		if (!alone_on_core(&events->list[first], host))
			continue;
		while (end < events->nr && alone_on_core(&events->list[end], host) &&
		       fit_together(events, first, end + 1, host))
			end++;
		for (size_t i = first; end > first + 1 && i < end; i++)
			events->list[i].group = group;
	}
}

static void place_group(struct events *events, size_t first, size_t end, struct host *host)
{
	int counters[PLACEMENT_MOST];

	if (end - first > PLACEMENT_MOST ||
	    placement_find(host, events->list + first, end - first, counters_missing(host), counters) >= 0)
		return;
	for (size_t i = first; i < end; i++) {
		struct event *event = &events->list[i];
		int counter = counters[i - first];

		if (counter != PLACED_NOWHERE)
			snprintf(event->counter, sizeof(event->counter), "%s %d",
				 counter >= PLACED_FIXED ? "fixed" : "general", counter % PLACED_FIXED);
	}
}

void grouping_place(struct events *events, struct host *host)
{
	size_t end;

	if (!host->events)
		return;
	if (fit_together(events, 0, events->nr, host)) {
		place_group(events, 0, events->nr, host);
		return;
	}
	for (size_t first = 0; first < events->nr; first = end) {
		end = end_of_group(events, first);
		place_group(events, first, end, host);
	}
}
