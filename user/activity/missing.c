// SPDX-License-Identifier: GPL-2.0-only
#include "activity/missing.h"

#include "activity/activity.h"
#include "record/record.h"

json_t *activity_missing(const struct activity *activity, const struct cpus *of)
{
	struct cpus missed;
	char text[512];

	if (!activity->hotplug.any_missed)
		return NULL;
	missed = activity->hotplug.missed;
	for (int cpu = cpus_next(&missed, 0); cpu >= 0; cpu = cpus_next(&missed, cpu + 1))
		if (of && !cpus_has(of, cpu))
			cpus_remove(&missed, cpu);
	return cpus_next(&missed, 0) >= 0 ? json_string(cpus_print(&missed, text, sizeof(text))) : NULL;
}

/* A record names at most so many missing cgroups. */
#define TOLD_MOST 4

json_t *activity_cgroups_missing(const struct activity *activity, int of)
{
	const struct cgroup_watch *watch = &activity->cgroup_watch;
	json_t *list = NULL;

	for (size_t i = 0; i < watch->nr; i++) {
		if (!watch->list[i].missed || activity->plan.target.cgroups[i].found ||
		    (of >= 0 && (int)i != of))
			continue;
		if (!list)
			list = json_array();
		if (json_array_size(list) < TOLD_MOST)
			json_array_append_new(list, value_text(activity->plan.target.cgroups[i].name, 1024));
	}
	return list;
}

void activity_put_missing(const struct activity *activity, json_t *record, const struct cpus *of, int cgroup)
{
	json_object_set_new(record, "cpus_missing", activity_missing(activity, of));
	json_object_set_new(record, "cgroups_missing", activity_cgroups_missing(activity, cgroup));
	json_object_set_new(record, "cgroups_late", activity_cgroups_late(activity, cgroup));
}
