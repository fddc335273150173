// SPDX-License-Identifier: GPL-2.0-only
#include "activity/why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "event/encoding.h"
#include "event/placement.h"
#include "host/kernel.h"
#include "plan/rules.h"

/* Registers that an event may have to wait for as well as for its counter, named as in rules_register(). */
static const char *const registers[] = {"load-latency threshold", "off-core register", "branch filter"};

/* The other event of this activity that holds a register of the core with another value; NULL: none does. */
static const struct event *rival_for_register(const struct activity *activity, const struct event *event,
					      const char *name)
{
	struct host *host = &activity->session->host;
	const struct events *events = &activity->plan.events;
	__u64 own, theirs;

	if (!rules_register(event, name, host, &own))
		return NULL;
	for (size_t i = 0; i < events->nr; i++)
		if (rules_register(&events->list[i], name, host, &theirs) && theirs != own)
			return &events->list[i];
	return NULL;
}

/* The other event of this activity with which the event can't have a counter at the same time. */
static const struct event *rival_for_counter(const struct activity *activity, const struct event *event)
{
	struct host *host = &activity->session->host;
	const struct events *events = &activity->plan.events;
	int counters[PLACEMENT_MOST];

	for (size_t i = 0; host->events && i < events->nr; i++) {
		struct event both[] = {*event, events->list[i]};

		if (&events->list[i] != event && placement_choices(host, event) &&
		    placement_choices(host, &events->list[i]) &&
		    placement_find(host, both, 2, 0, counters) >= 0)
			return &events->list[i];
	}
	return NULL;
}

/* Whether the events of this activity, or those of them that are pinned, are more than there are counters. */
static bool too_many(const struct activity *activity, bool pinned)
{
	const struct events *events = &activity->plan.events;
	struct event *list = xcalloc(events->nr, sizeof(*list));
	struct host *host = &activity->session->host;
	int counters[PLACEMENT_MOST];
	size_t nr = 0;
	bool many;

	for (size_t i = 0; i < events->nr; i++)
		if (!pinned || event_is_pinned(events, i))
			list[nr++] = events->list[i];
	many = host->events && (nr > PLACEMENT_MOST || placement_find(host, list, nr, 0, counters) >= 0);
	free(list);
	return many;
}

/* The register that the event needs in addition to its counter, by which something outside may hold it up;
 * NULL: none. */
static const char *register_of(const struct activity *activity, const struct event *event)
{
	struct host *host = &activity->session->host;
	__u64 value;

	for (size_t r = 0; r < ARRAY_SIZE(registers); r++)
		if (rules_register(event, registers[r], host, &value))
			return registers[r];
	return NULL;
}

/* Writes who holds ("hold", "held") the counters: the session's other activities, if they want them too. */
static int who_holds(const struct activity *activity, const char *verb, char text[WHY_SIZE])
{
	const char *rivals = activity->rivals;

	return snprintf(text, WHY_SIZE, "%s%s%s %s the counters that it can use",
			rivals[0] ? "this session's " : "others", rivals, rivals[0] ? ", or others," : "",
			verb);
}

/* Who else may hold what the event needs. */
static const char *others(const struct activity *activity, const struct event *event, char text[WHY_SIZE])
{
	const char *reg = register_of(activity, event);
	size_t used = who_holds(activity, "hold", text);

	if (reg)
		used += snprintf(text + used, WHY_SIZE - used,
				 ", or the core's %s with another value (on the core's other thread too)",
				 reg);
	if (kernel_nmi_watchdog(&activity->session->host))
		snprintf(text + used, WHY_SIZE - used,
			 "; the kernel's NMI watchdog holds one for good (sysctl kernel.nmi_watchdog=0)");
	return text;
}

/* Why the event takes turns with others of its own activity; NULL: it does not. */
static const char *turns_of_its_own(const struct activity *activity, const struct event *event,
				    char text[WHY_SIZE])
{
	const struct event *rival;

	for (size_t r = 0; r < ARRAY_SIZE(registers); r++) {
		rival = rival_for_register(activity, event, registers[r]);
		if (!rival)
			continue;
		snprintf(text, WHY_SIZE, "'%.150s' needs the core's %s with another value: they take turns",
			 rival->name, registers[r]);
		return text;
	}
	rival = rival_for_counter(activity, event);
	if (!rival && !too_many(activity, false))
		return NULL;
	if (rival)
		snprintf(text, WHY_SIZE, "'%.150s' can only use the same counter: they take turns",
			 rival->name);
	else
		snprintf(text, WHY_SIZE, "the events are more than the core has counters: they take turns");
	return text;
}

const char *why_in_turns(const struct activity *activity, size_t i, char text[WHY_SIZE])
{
	const struct event *event = &activity->plan.events.list[i];

	return turns_of_its_own(activity, event, text) ?: others(activity, event, text);
}

/* Which of the two it was nobody can tell: the kernel says only that it had no counter. */
static void never_got_one(const struct activity *activity, const struct event *event, char text[WHY_SIZE])
{
	char own[WHY_SIZE], who[WHY_SIZE];

	others(activity, event, who);
	if (turns_of_its_own(activity, event, own))
		snprintf(text, WHY_SIZE,
			 "it never got a counter: %.230s, and its turn did not come; or %.300s", own, who);
	else
		snprintf(text, WHY_SIZE, "it never got a counter: %.350s", who);
}

/* The reason if the kernel has given up a pinned event, which it tells by an end of file instead of a count;
 * NULL if it has not. */
static const char *why_given_up(const struct activity *activity, size_t i, const struct count *count,
				char text[WHY_SIZE])
{
	char who[WHY_SIZE];
	/* Of a command that has ended the kernel doesn't tell it, but a command has run; in a later interval
	 * it may have slept. */
	bool ran = count->enabled_ns ||
		   (activity->plan.target.command && !activity->was_off && !activity->reported);

	if (!event_is_pinned(&activity->plan.events, i) || events_always_run(&activity->plan.events, i) ||
	    !ran)
		return NULL;
	if (!count->running_ns) {
		if (too_many(activity, true))
			snprintf(who, sizeof(who), "the pinned events are more than the core has counters");
		else
			who_holds(activity, "held", who);
		snprintf(text, WHY_SIZE,
			 "it is pinned, and %.300s: the kernel does not try again; without D it takes turns",
			 who);
		return text;
	}
	return count_is_estimate(count) ? "only a part of it was counted: it is pinned, and when no counter "
					  "was free for it, the kernel stopped counting it for good"
					: NULL;
}

/* begin_new_exec(), fs/exec.c. */
#define CUT                                                                                                  \
	"the target executed a program that changes its rights (setuid, setgid, file capabilities) or "      \
	"that "                                                                                              \
	"it may not read: the kernel ends the counting of such a process; -a counts it"

/* Why it was not enabled for any time. */
static const char *why_not_enabled(const struct activity *activity)
{
	const struct target *target = &activity->plan.target;

	if (activity->was_off)
		return "counting was switched off (--delay, --control)";
	if (target_in_cgroups(target))
		return CGROUPS_NEVER_RAN;
	return target->cpus_given ? "its CPU was offline" : TARGET_NEVER_RAN;
}

const char *why_not_counted(const struct activity *activity, size_t i, const struct count *count,
			    char text[WHY_SIZE])
{
	const struct event *event = &activity->plan.events.list[i];
	const char *given_up = why_given_up(activity, i, count, text);

	if (event->never[0])
		return event->never;
	if (given_up)
		return given_up;
	if (count->running_ns)
		return NULL;
	if (activity_cut(activity))
		return CUT;
	if (activity_partial(activity))
		return "a signal ended the run before an execution had counted it";
	if (!count->enabled_ns)
		return why_not_enabled(activity);
	never_got_one(activity, event, text);
	return text;
}

void why_put(const struct activity *activity, size_t i, const struct count *count, json_t *record)
{
	char text[WHY_SIZE];
	const char *why = why_not_counted(activity, i, count, text);

	if (!why && count_is_estimate(count))
		why = why_in_turns(activity, i, text);
	json_object_set_new(record, "status", json_string(count_status(count)));
	if (why)
		json_object_set_new(record, "why", json_string(why));
}

void why_put_pauses(__u64 pauses, __u64 by_group, json_t *record)
{
	const json_t *before = json_object_get(record, "why");
	char text[WHY_SIZE + 200];

	snprintf(text, sizeof(text),
		 "%s%s%s sampled too often (kernel.perf_event_max_sample_rate): the kernel paused it %llu "
		 "time%s until its next tick, and what occurred meanwhile is not counted",
		 before ? json_string_value(before) : "", before ? "; " : "",
		 !by_group	      ? "it"
		 : by_group == pauses ? "another event of its group"
				      : "it or another event of its group",
		 (unsigned long long)pauses, pauses == 1 ? "" : "s");
	json_object_set_new(record, "why", json_string(text));
}
