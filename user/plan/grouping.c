// SPDX-License-Identifier: GPL-2.0-only
#include "plan/grouping.h"

#include <stdio.h>

#include "event/encoding.h"
#include "event/placement.h"
#include "metric/fit.h"

/* Whether the events from `first` up to, but not including, `end` fit the counters at the same time. */
static bool fit(const struct events *events, size_t first, size_t end, struct host *host)
{
	struct events some = {events->list + first, end - first};

	return events_fit(&some, host);
}

static bool alone_on_core(const struct event *event, struct host *host)
{
	struct encoding encoding;

	return event->group < 0 && encoding_of(&event->attr, host, &encoding);
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

	if (!host->events || fit(events, 0, events->nr, host))
		return;
	for (size_t first = 0; first < events->nr; first = end) {
		int group = next_group(events);

		end = first + 1;
		if (!alone_on_core(&events->list[first], host))
			continue;
		while (end < events->nr && alone_on_core(&events->list[end], host) &&
		       fit(events, first, end + 1, host))
			end++;
		for (size_t i = first; end > first + 1 && i < end; i++)
			events->list[i].group = group;
	}
}

static void place(struct events *events, size_t first, size_t end, struct host *host)
{
	int counters[PLACEMENT_MOST];

	if (end - first > PLACEMENT_MOST ||
	    placement_find(host, events->list + first, end - first, counters_held(host), counters) >= 0)
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
	if (fit(events, 0, events->nr, host)) {
		place(events, 0, events->nr, host);
		return;
	}
	for (size_t first = 0; first < events->nr; first = end) {
		end = first + 1;
		while (end < events->nr && !event_leads(events, end))
			end++;
		place(events, first, end, host);
	}
}
