/* SPDX-License-Identifier: GPL-2.0-only */
/* Several activities of a run may have measured the same, such as a profile and a stream of one event. Their
 * numbers are told apart, and named by the activity where that is needed. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

/* Starts by activities_begin(). */
struct activities {
	json_t *measured; /* {what: {activity: the one that its numbers are kept with}} */
	json_t *second;	  /* {activity: true}: those of a second stream, which is compared */
	bool comparing;
};

void activities_begin(struct activities *activities);
void activities_release(struct activities *activities);

/* Records that are taken in from here on belong to the second stream. */
void activities_second(struct activities *activities);

/* Takes in a start record, which tells of an activity before anything is measured. */
void activities_start(struct activities *activities, const json_t *record);

/*
 * The activity that the numbers of a record about `what` are kept with: its own, or in a second stream that
 * of the first one which it is compared with. That has the same name, unless only one measured this. The text
 * is borrowed, until the release.
 */
const char *activity_for(struct activities *activities, const char *what, const json_t *record);

/* "cpu-clock", or "cpu-clock, activity hot" if several activities have measured it. The caller frees it. */
char *activity_title(const struct activities *activities, const char *what, const char *activity);
