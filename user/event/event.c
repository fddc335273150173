// SPDX-License-Identifier: GPL-2.0-only
#include "event/event.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void event_reason(struct event *event, const char *field, const char *why, ...)
{
	struct reason *reason = event->reasons;
	va_list args;

	while (reason < event->reasons + event->nr_reasons && strcmp(reason->field, field))
		reason++;
	if (reason == event->reasons + EVENT_REASONS)
		return; /* not reached: EVENT_REASONS has room for every field that is ever set */
	if (reason == event->reasons + event->nr_reasons)
		event->nr_reasons++;
	reason->field = field;
	va_start(args, why);
	vsnprintf(reason->why, sizeof(reason->why), why, args);
	va_end(args);
}

void event_note(struct event *event, const char *text, ...)
{
	size_t used = strlen(event->note);
	char more[sizeof(event->note)];
	va_list args;

	va_start(args, text);
	vsnprintf(more, sizeof(more), text, args);
	va_end(args);
	if (more[0])
		snprintf(event->note + used, sizeof(event->note) - used, "%s%s", used ? "; " : "", more);
}

const char *event_reason_of(const struct event *event, const char *field)
{
	for (size_t i = 0; i < event->nr_reasons; i++)
		if (!strcmp(event->reasons[i].field, field))
			return event->reasons[i].why;
	return NULL;
}

void events_release(struct events *events)
{
	free(events->list);
	*events = (struct events){0};
}

bool event_leads(const struct events *events, size_t i)
{
	int group = events->list[i].group;

	return group < 0 || !i || events->list[i - 1].group != group;
}

bool event_is_pinned(const struct events *events, size_t i)
{
	while (!event_leads(events, i))
		i--;
	return events->list[i].attr.pinned;
}

bool events_always_run(const struct events *events, size_t i)
{
	while (!event_leads(events, i))
		i--;
	do {
		__u32 type = events->list[i].attr.type;

		if (type != PERF_TYPE_SOFTWARE && type != PERF_TYPE_TRACEPOINT)
			return false;
	} while (++i < events->nr && !event_leads(events, i));
	return true;
}

__u64 event_distance(const struct event *event)
{
	__u64 period = event->attr.sample_period;

	if (event->attr.freq || !period)
		return 0;
	return (period < event->least ? event->least : period) + event->beyond;
}

void event_leave_samples_out(struct event *event)
{
	if (!event->sampling_given)
		return;
	event->sampling_given = false;
	EVENT_SET(event, freq, 0, "counting takes no samples");
	EVENT_SET(event, sample_period, 0, "counting takes no samples");
	event_note(event, "period and freq are about samples; counting takes none, and leaves them out");
}

bool event_is_clock(const struct event *event)
{
	return event->attr.type == PERF_TYPE_SOFTWARE && (event->attr.config == PERF_COUNT_SW_CPU_CLOCK ||
							  event->attr.config == PERF_COUNT_SW_TASK_CLOCK);
}

bool event_stops_throttled(const struct event *event)
{
	__u32 type = event->attr.type;

	return type != PERF_TYPE_SOFTWARE && type != PERF_TYPE_TRACEPOINT && type != PERF_TYPE_BREAKPOINT;
}

bool event_tells_next_period(const struct event *event)
{
	return event->attr.freq && !event_is_clock(event) && !event_stops_throttled(event);
}

__u64 event_clock_period(const struct event *event)
{
	__u64 period = event->attr.freq ? 1000000000 / event->attr.sample_freq : event->attr.sample_period;

	return period < CLOCK_PERIOD_LEAST ? CLOCK_PERIOD_LEAST : period;
}
