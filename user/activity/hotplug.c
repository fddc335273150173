// SPDX-License-Identifier: GPL-2.0-only
#include "activity/hotplug.h"

#include <string.h>

#include "activity/activity.h"
#include "record/record.h"

static int tell_of_cpu(struct activity *activity, const char *change, int cpu, const char *why)
{
	json_t *record = json_pack("{s:s, s:s, s:i}", "type", "hotplug", "change", change, "cpu", cpu);

	if (why)
		json_object_set_new(record, "why", value_text(why, 512));
	return activity_write(activity, record);
}

static int leave_cpu(struct activity *activity, int cpu)
{
	activity_detach_places(activity, cpu, -1);
	counters_leave(activity->counters, cpu);
	cpus_add(&activity->hotplug.missing, cpu);
	cpus_add(&activity->hotplug.missed, cpu);
	activity->hotplug.any_missed = true;
	return tell_of_cpu(activity, "offline", cpu, NULL);
}

static int join_cpu(struct activity *activity, int cpu)
{
	const struct places *places = counters_places(activity->counters);
	struct hotplug *hotplug = &activity->hotplug;
	bool told = cpus_has(&hotplug->refused, cpu);
	struct refusal refusal = {0};

	for (size_t p = 0; p < places->nr; p++) {
		if (places->list[p].cpu != cpu || places->list[p].open || places->list[p].away ||
		    !activity_join_place(activity, p, &refusal))
			continue;
		activity_detach_places(activity, cpu, -1);
		counters_leave(activity->counters, cpu);
		cpus_add(&hotplug->refused, cpu);
		return told ? 0 : tell_of_cpu(activity, "refused", cpu, refusal.why);
	}
	cpus_remove(&hotplug->missing, cpu);
	cpus_remove(&hotplug->refused, cpu);
	return tell_of_cpu(activity, "online", cpu, NULL);
}

/* Finds the CPUs whose events are open, and those whose events should be. Adds to `gone` the CPUs that went
 * offline without a notice: the clock of their events stands still in the last reading. */
static void find_changes(const struct activity *activity, struct cpus *open, struct cpus *wanted,
			 struct cpus *gone)
{
	const struct places *places = counters_places(activity->counters);

	*open = *wanted = (struct cpus){0};
	for (size_t p = 0; p < places->nr; p++) {
		const struct place *place = &places->list[p];

		if (place->cpu < 0 || place->away)
			continue;
		cpus_add(place->open ? open : wanted, place->cpu);
		if (place->open && place->stalled)
			cpus_add(gone, place->cpu);
	}
}

/* Closes and opens events according to the CPUs that are online. */
static void follow_cpus(void *context, const struct cpus *noticed)
{
	struct activity *activity = context;
	struct cpus online, open, wanted, gone = *noticed;
	int err = 0;

	if (!activity->counters || !notices_online(&activity->session->notices, &online))
		return;
	find_changes(activity, &open, &wanted, &gone);
	for (int cpu = cpus_next(&open, 0); cpu >= 0 && !err; cpu = cpus_next(&open, cpu + 1)) {
		if (cpus_has(&online, cpu) && !cpus_has(&gone, cpu))
			continue;
		err = leave_cpu(activity, cpu);
		cpus_add(&wanted, cpu);
	}
	for (int cpu = cpus_next(&wanted, 0); cpu >= 0 && !err; cpu = cpus_next(&wanted, cpu + 1))
		if (cpus_has(&online, cpu))
			err = join_cpu(activity, cpu);
}

void hotplug_begin(struct activity *activity)
{
	struct session *session = activity->session;

	activity->hotplug = (struct hotplug){.follows = activity->plan.target.cpus_given};
	if (activity->hotplug.follows)
		notices_listen(&session->notices, session->loop, session->host.root, follow_cpus, activity);
}

void hotplug_end(struct activity *activity)
{
	if (activity->hotplug.follows)
		notices_leave(&activity->session->notices, activity);
	activity->hotplug.follows = false;
}

/* Without a notice, an offline CPU shows by its events' clock, which stands still. In cgroups that also
 * happens at other times, so there the online CPUs are always checked. */
void hotplug_check(struct activity *activity, bool last)
{
	struct notices *notices = &activity->session->notices;

	if (activity->hotplug.follows &&
	    (last || notices->socket < 0 || target_in_cgroups(&activity->plan.target) ||
	     counters_stalled(activity->counters)))
		notices_take(notices, activity);
}

void hotplug_next(struct activity *activity)
{
	activity->hotplug.missed = activity->hotplug.missing;
	activity->hotplug.any_missed = cpus_next(&activity->hotplug.missed, 0) >= 0;
}
