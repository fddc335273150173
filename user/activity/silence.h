/* SPDX-License-Identifier: GPL-2.0-only */
/* Why an event that was counted gave no sample: the same words in the records of all activities. What was not
 * counted has its reason from why.h. */
#pragma once

#include "activity/activity.h"
#include "base/count.h"

#define SILENCE_SIZE 400

/* What is known of an event without samples, of an interval or a run. */
struct silence {
	const struct activity *activity;
	const struct event *event;
	const struct count *count;
	const struct samples *samples;
	const char *cause; /* missed_cause() */
};

/* Whether the event was counted and there is no sample of it. */
bool silence_is(const struct silence *silence);

/* Writes why there is no sample. Returns `text`. */
const char *silence_why(const struct silence *silence, char text[SILENCE_SIZE]);
