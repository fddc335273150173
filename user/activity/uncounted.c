// SPDX-License-Identifier: GPL-2.0-only
#include "activity/uncounted.h"

#include <stdlib.h>
#include <string.h>

#include "activity/why.h"
#include "base/list.h"
#include "base/memory.h"

static struct uncounted_event *event_of(struct uncounted *uncounted, const struct event *event)
{
	for (size_t i = 0; i < uncounted->nr; i++)
		if (!strcmp(uncounted->list[i].name, event->name) && uncounted->list[i].nth == event->nth)
			return &uncounted->list[i];
	return NULL;
}

/* The row that has counted an event, or else the one in which it was enabled longest; NULL: it is in none. */
static const struct tally_row *row_of(const struct tally *tally, size_t i)
{
	const struct tally_row *found = NULL;

	for (size_t r = 0; r < tally->nr; r++) {
		const struct tally_row *row = &tally->rows[r];

		if (row->has[i] && row->now[i].running_ns)
			return row;
		if (row->has[i] && (!found || row->now[i].enabled_ns > found->now[i].enabled_ns))
			found = row;
	}
	return found;
}

/* Tables say it themselves. */
static bool is_to_be_said(const struct activity *activity)
{
	return !activity->options->quiet && !session_all_people(activity->session);
}

void uncounted_note(struct uncounted *uncounted, const struct activity *activity, const struct tally *tally)
{
	for (size_t i = 0; i < activity->plan.events.nr && is_to_be_said(activity); i++) {
		const struct event *event = &activity->plan.events.list[i];
		struct uncounted_event *noted = event_of(uncounted, event);
		const struct tally_row *row = row_of(tally, i);
		char text[WHY_SIZE];

		if (!row || event->never[0] || (noted && !noted->why))
			continue;
		if (!noted) {
			noted = xappend(uncounted->list, uncounted->nr);
			*noted = (struct uncounted_event){.name = xstrdup(event->name), .nth = event->nth};
		}
		free(noted->why);
		noted->why = NULL;
		if (!row->now[i].running_ns && !tally->counted[i])
			noted->why = xstrdup(why_not_counted(activity, i, &row->now[i], text));
	}
}

static bool has_reason(const struct uncounted_event *event, const char *why)
{
	return event->why && !strcmp(event->why, why);
}

/* Whether an event before this one has the same reason and, if it is given, this name. */
static bool is_said(const struct uncounted *uncounted, size_t i, const char *name)
{
	for (size_t before = 0; before < i; before++)
		if (has_reason(&uncounted->list[before], uncounted->list[i].why) &&
		    (!name || !strcmp(uncounted->list[before].name, name)))
			return true;
	return false;
}

/* Several events of one name are told apart only if not all have the same reason. */
static void add_name(char *names, size_t size, const struct uncounted *uncounted, size_t i)
{
	const struct uncounted_event *event = &uncounted->list[i];
	char *name;

	if (is_said(uncounted, i, event->name))
		return;
	name = event->nth > 1 ? xasprintf("%s %u", event->name, event->nth) : xstrdup(event->name);
	list_append(names, size, name);
	free(name);
}

static void say_each_reason(const struct uncounted *uncounted, const struct activity *activity,
			    const char *what)
{
	for (size_t i = 0; i < uncounted->nr; i++) {
		const char *why = uncounted->list[i].why;
		char names[400] = "";

		if (!why || is_said(uncounted, i, NULL))
			continue;
		for (size_t other = i; other < uncounted->nr; other++)
			if (has_reason(&uncounted->list[other], why))
				add_name(names, sizeof(names), uncounted, other);
		activity_say(activity, "%s: %s: %s", names, what, why);
	}
}

void uncounted_say(const struct uncounted *uncounted, const struct activity *activity)
{
	say_each_reason(uncounted, activity, "not counted");
}

void uncounted_say_never(const struct activity *activity)
{
	const struct events *events = &activity->plan.events;
	struct uncounted never = {0};
	bool sampled = false;

	for (size_t i = 0; i < events->nr; i++) {
		if (!events->list[i].never[0])
			continue;
		sampled = sampled || events->list[i].attr.sample_period;
		*xappend(never.list, never.nr) = (struct uncounted_event){
			.name = xstrdup(events->list[i].name), .why = xstrdup(events->list[i].never)};
	}
	say_each_reason(&never, activity, sampled ? "no samples" : "not counted");
	uncounted_release(&never);
}

void uncounted_release(struct uncounted *uncounted)
{
	for (size_t i = 0; i < uncounted->nr; i++) {
		free(uncounted->list[i].name);
		free(uncounted->list[i].why);
	}
	free(uncounted->list);
	*uncounted = (struct uncounted){0};
}
