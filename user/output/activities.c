// SPDX-License-Identifier: GPL-2.0-only
#include "output/activities.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "output/member.h"

void activities_begin(struct activities *activities)
{
	*activities = (struct activities){.places = json_object(), .second = json_object()};
}

void activities_release(struct activities *activities)
{
	for (size_t i = 0; i < activities->nr; i++) {
		free(activities->list[i]->what);
		free(activities->list[i]->activity);
		free(activities->list[i]);
	}
	free(activities->list);
	json_decref(activities->places);
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

/* The place of the only activity of the first stream that has measured it, if the second stream has none of
 * its name; NULL otherwise. */
static json_t *sole(const struct activities *activities, json_t *known)
{
	void *first = json_object_iter(known);

	return json_object_size(known) == 1 &&
			       !json_object_get(activities->second, json_object_iter_key(first))
		       ? json_incref(json_object_iter_value(first))
		       : NULL;
}

static json_t *add_measurement(struct activities *activities, const char *what, const char *activity)
{
	struct measurement *measured = xmalloc(sizeof(*measured));

	*measured = (struct measurement){xstrdup(what), xstrdup(activity), activities->nr};
	activities->list =
		xroom(activities->list, activities->nr, &activities->room, sizeof(*activities->list));
	activities->list[activities->nr] = measured;
	return json_integer(activities->nr++);
}

const struct measurement *measurement_in(struct activities *activities, const char *what,
					 const json_t *record)
{
	const char *activity = string(record, "activity");
	json_t *known = json_object_get(activities->places, what), *place;

	if (!known) {
		known = json_object();
		json_object_set_new_nocheck(activities->places, what, known);
	}
	activities_start(activities, record);
	place = json_object_get(known, activity);
	if (!place) {
		place = (activities->comparing ? sole(activities, known) : NULL)
				?: add_measurement(activities, what, activity);
		json_object_set_new_nocheck(known, activity, place);
	}
	return activities->list[json_integer_value(place)];
}

char *measurement_title(const struct activities *activities, const struct measurement *measured)
{
	json_t *known = json_object_get(activities->places, measured->what), *place;
	size_t different = 0;
	const char *name;

	json_object_foreach(known, name, place)
		different += !strcmp(name, activities->list[json_integer_value(place)]->activity);
	return different > 1 ? xasprintf("%s, activity %s", measured->what, measured->activity)
			     : xstrdup(measured->what);
}
