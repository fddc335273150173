// SPDX-License-Identifier: GPL-2.0-only
#include "output/activities.h"

#include <string.h>

#include "base/memory.h"
#include "output/member.h"

void activities_begin(struct activities *activities)
{
	*activities = (struct activities){.measured = json_object(), .second = json_object()};
}

void activities_release(struct activities *activities)
{
	json_decref(activities->measured);
	json_decref(activities->second);
}

void activities_second(struct activities *activities)
{
	activities->comparing = true;
}

void activities_start(struct activities *activities, const json_t *record)
{
	if (activities->comparing)
		json_object_set_new(activities->second, string(record, "activity"), json_true());
}

/* The only activity of the first stream that has measured it, if the second stream has none of its name. */
static const char *sole(const struct activities *activities, json_t *known)
{
	const char *first = json_object_iter_key(json_object_iter(known));

	return json_object_size(known) == 1 && !json_object_get(activities->second, first) ? first : NULL;
}

const char *activity_for(struct activities *activities, const char *what, const json_t *record)
{
	const char *activity = string(record, "activity"), *other = NULL;
	json_t *known = json_object_get(activities->measured, what);

	if (!known) {
		known = json_object();
		json_object_set_new_nocheck(activities->measured, what, known);
	}
	activities_start(activities, record);
	if (!json_object_get(known, activity)) {
		if (activities->comparing)
			other = sole(activities, known);
		json_object_set_new_nocheck(known, activity, json_string_nocheck(other ?: activity));
	}
	return string(known, activity);
}

char *activity_title(const struct activities *activities, const char *what, const char *activity)
{
	json_t *known = json_object_get(activities->measured, what), *with;
	size_t different = 0;
	const char *name;

	json_object_foreach(known, name, with)
		different += !strcmp(name, json_string_value(with));
	return different > 1 ? xasprintf("%s, activity %s", what, activity) : xstrdup(what);
}
