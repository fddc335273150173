/* SPDX-License-Identifier: GPL-2.0-only */
/* Several activities of a run may have measured the same, such as a profile and a stream of one event. Their
 * numbers are told apart, and named by the activity where that is needed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

/* Something that an activity has measured, and that numbers are kept of. */
struct measurement {
	char *what; /* such as the title of an event */
	char *activity;
	size_t place; /* in the list */
};

/* Starts by activities_begin(). */
struct activities {
	struct measurement **list;
	size_t nr, room;
	json_t *places; /* {what: {activity: the place in the list of what its numbers are kept with}} */
	json_t *second; /* {activity: true}: those of a second stream, which is compared */
	bool comparing;
};

void activities_begin(struct activities *activities);
void activities_release(struct activities *activities);

/* Records that are taken in from here on belong to the second stream. */
void activities_second(struct activities *activities);

/* Takes in a start record, which tells of an activity before anything is measured. */
void activities_start(struct activities *activities, const json_t *record);

/*
 * What the numbers of a record about `what` are kept with: the same pointer for the same text and activity,
 * and in a second stream that of the first one which it is compared with. That activity has the same name,
 * unless only one measured this. Borrowed, until the release.
 */
const struct measurement *measurement_in(struct activities *activities, const char *what,
					 const json_t *record);

/* "cpu-clock", or "cpu-clock, activity hot" if several activities have measured it. The caller frees it. */
char *measurement_title(const struct activities *activities, const struct measurement *measured);
