/* SPDX-License-Identifier: GPL-2.0-only */
/* The record that a stream begins with: who measures what, where, and with which events exactly. */
#ifndef NHMTAP_START_H
#define NHMTAP_START_H

#include <jansson.h>

#include "activity/activity.h"

/* What every start record has, of an activity or not. A new reference. */
json_t *start_base(struct host *host, const char *command);

/* Adds what an activity's has: its target, its events. */
void start_put_activity(json_t *start, struct activity *activity);

/* An event with its full encoding, as the start record and `explain` show it. A new reference. */
json_t *event_value(const struct event *event, const struct host *host);

#endif
